import { defineConfig } from "vite";

/** The player that `mpm-nodes view --html` puts into its file: one script, which loads nothing. */
export default defineConfig({
  build: {
    outDir: "../bundle", emptyOutDir: false, target: "es2022", chunkSizeWarningLimit: 2000,
    lib: { entry: "src/player/main.ts", formats: ["iife"], name: "player", fileName: () => "player.js" },
  },
});
