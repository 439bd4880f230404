import { area } from "./area.js";

export const wrong: number = area(6, 7);
