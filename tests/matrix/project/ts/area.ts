import facts from "../package.json" with { type: "json" };

export function area(width: number, height: number): string {
  return `${facts.name}: ${width * height}`;
}
