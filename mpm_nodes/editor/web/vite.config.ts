import { readFileSync } from "node:fs";
import { defineConfig } from "vite";
import react from "@vitejs/plugin-react";

/** The licences of what is bundled, as their texts ask for. */
function notices(): string {
  const lock = JSON.parse(readFileSync("package-lock.json", "utf-8")).packages as Record<string, { version: string; dev?: boolean }>;
  const shipped = Object.keys(lock).filter((path) => path && !lock[path].dev && !path.includes("@types/")).sort();
  const text = shipped.map((path) => {
    const name = path.replace(/^.*node_modules\//, "");
    for (const file of ["LICENSE", "LICENSE.md", "LICENSE.txt", "license"]) {
      try {
        return `${name} ${lock[path].version}\n\n${readFileSync(`${path}/${file}`, "utf-8").trim()}`;
      } catch { /* the next spelling */ }
    }
    throw new Error(`${name}: has no licence file`);
  });
  return text.join("\n\n----------------------------------------\n\n") + "\n";
}

export default defineConfig({
  base: "./",
  plugins: [
    react(),
    { name: "notices", generateBundle() { this.emitFile({ type: "asset", fileName: "LICENSES.txt", source: notices() }); } },
  ],
  build: {
    outDir: "../bundle",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: { output: { entryFileNames: "editor.js", assetFileNames: (asset) => (asset.names[0]?.endsWith(".css") ? "editor.css" : "[name][extname]") } },
  },
});
