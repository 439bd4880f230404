console.log(process.env.GREETING ?? "hello", process.argv.length);
