const sum = (a, b) => a + b;

test("sum", () => expect(sum(40, 2)).toBe(42));
test("snapshot", () => expect({ sum: sum(40, 2) }).toMatchSnapshot());
