import { createRequire } from "node:module";

/** MCP's reference server for files: a program for Node. */
export const filesystemServer = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/server-filesystem/dist/index.js",
);
