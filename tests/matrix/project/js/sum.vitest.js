import { expect, test } from "vitest";
import { sum } from "./sum.js";

test("sum", () => expect(sum(40, 2)).toBe(42));
test("mode", () => expect(import.meta.env.MODE).toBe("test"));
