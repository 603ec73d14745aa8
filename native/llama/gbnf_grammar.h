// Grammars in llama.cpp's GBNF notation, on llama.cpp's engine. llguidance is no replacement: it
// cuts a text into lexemes first, and GBNF knows none. Of 13 grammars that llguidance's own
// converter turned into Lark, one did not compile and two lost texts: `root ::= [a-c]* "abc!"`
// takes "ababc!" here and not there. A build without cargo has GBNF only.
#pragma once

#include <memory>
#include <string>

#include "core/matcher.h"
#include "core/result.h"
#include "llama/model.h"

namespace fermata {

// Its beginning is the rule `root`. Safe from every thread. The result keeps the model.
// Errors: grammar_invalid, grammar_too_large.
Result<std::shared_ptr<const Grammar>> compile_gbnf(std::shared_ptr<const Model> model,
                                                    const std::string& text);

}  // namespace fermata
