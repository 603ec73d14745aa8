// Grammars in llama.cpp's GBNF notation.
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
