import assert from "node:assert";
import test from "node:test";
import { sum } from "./sum.js";

test("sum", () => assert.equal(sum(40, 2), 42));
