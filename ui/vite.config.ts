// The page: `vite build ui` writes ui/dist, which the server reads once when it starts.
import { brotliCompressSync, constants } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Below this a compressed copy is not worth a second file. In bytes. */
const compressFrom = 1024;

/** A `.br` beside each text, so that the server compresses nothing. */
function precompress(): Plugin {
  return {
    name: "precompress",
    apply: "build",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        for (const file of Object.values(bundle)) {
          const source = file.type === "chunk" ? file.code : file.source;
          const bytes = Buffer.from(source);
          if (bytes.length < compressFrom) continue;
          const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
          const compressed = brotliCompressSync(bytes, { params });
          this.emitFile({ type: "asset", fileName: `${file.fileName}.br`, source: compressed });
        }
      },
    },
  };
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [precompress()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    // The Content-Security-Policy knows no data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
});
