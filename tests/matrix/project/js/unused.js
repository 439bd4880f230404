const unused = 1;
export   default {  }
