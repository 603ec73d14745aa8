/** The chat templates in llama.cpp's source. */

import { join } from "node:path";
import { llamaSource } from "../../scripts/setup/paths.mjs";

export const templatesDirectory = join(llamaSource, "models/templates");
