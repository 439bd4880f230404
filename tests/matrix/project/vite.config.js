import { defineConfig } from "vite";

export default defineConfig({ test: { include: ["**/*.vitest.js"], watch: false } });
