import { sum } from "./sum.js";

const title = import.meta.env.VITE_TITLE ?? "untitled";
document.getElementById("sum").textContent = `${title}: ${sum(40, 2)}`;
