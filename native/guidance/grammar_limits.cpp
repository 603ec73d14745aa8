#include "guidance/grammar_limits.h"

#include <algorithm>
#include <string>

namespace fermata {

namespace {

// Brackets in strings and comments count too: that only makes the limit stricter.
std::size_t deepest(std::string_view text) {
    std::size_t depth = 0;
    std::size_t most = 0;
    for (const char letter : text) {
        if (letter == '(' || letter == '[' || letter == '{') most = std::max(most, ++depth);
        if (letter == ')' || letter == ']' || letter == '}') depth -= depth > 0 ? 1 : 0;
    }
    return most;
}

}  // namespace

std::optional<Error> grammar_fault(std::string_view text) {
    if (text.size() > kMaxGrammarBytes) {
        return Error{ErrorCode::kGrammarTooLarge,
                     "The grammar has " + std::to_string(text.size()) + " bytes; at most " +
                         std::to_string(kMaxGrammarBytes) + " are allowed."};
    }
    if (text.find('\0') != std::string_view::npos)
        return Error{ErrorCode::kGrammarInvalid, "The grammar contains a NUL character."};
    if (deepest(text) > kMaxGrammarDepth) {
        return Error{ErrorCode::kGrammarTooLarge, "The grammar nests brackets more than " +
                                                      std::to_string(kMaxGrammarDepth) + " deep."};
    }
    return std::nullopt;
}

}  // namespace fermata
