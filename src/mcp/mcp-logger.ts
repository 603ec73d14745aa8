/** What src/mcp asks of a logger; pino's fits. Type-only. */

export interface McpLogger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
