import type { ResponseService } from "../../responses/response-service.ts";
import type { RouteContext } from "../chat-completions.ts";

export interface ResponsesContext extends RouteContext {
  responses: ResponseService;
}
