from calc import add

text: str = add(40, 2)
