import type { RouteContext } from "../context.ts";
import type { ResponseService } from "./response-service.ts";

export interface ResponsesContext extends RouteContext {
  responses: ResponseService;
}
