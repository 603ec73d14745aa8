// What an engine of grammars must know of a vocabulary.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace fermata {

// The first byte of the entry of a token that no text matches (control, end of generation). The
// byte itself is in no UTF-8 text.
inline constexpr char kUnmatchable = '\xFF';

struct VocabularyDescription {
    std::vector<std::string> tokens;  // by id: the token's bytes, or kUnmatchable and a name
    std::vector<Token> end_tokens;    // at least one, the preferred one first
    // The tokens of UTF-8 text that follows other text; their bytes are the text's. Safe from every
    // thread. Empty: it cannot be done.
    std::function<std::vector<Token>(std::string_view text)> tokenize;
};

}  // namespace fermata
