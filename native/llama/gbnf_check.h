// Keeps from llama.cpp's GBNF what would hang it, exhaust memory or end the process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace fermata {

// The tokens that the grammar names, as `<spelling>` or `<[id]>`, if llama.cpp may see it. Linear
// in the text.
//
// Refused are syntax errors, rules that are missing or defined twice, a rule that can begin with
// itself (also behind what may be empty), and grammars where following all ways to read a text at
// once, as llama.cpp does, is too much work: so many ways to begin, or alternatives that begin
// alike and contain their rule again. Errors: grammar_invalid, grammar_too_large.
Result<std::vector<std::string>> check_gbnf(std::string_view text);

}  // namespace fermata
