// Looks for a short way to the end of a guided text.
//
// The grammar is seen through its masks only, so the way is found by trying: where little is
// allowed, what closes (a bracket, a quote) before what goes on; where nearly anything is, the
// texts that may end such a stretch, each looked at for whether it did. The result is short, not
// provably shortest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/matcher.h"
#include "core/token_mask.h"
#include "core/vocabulary_description.h"

namespace fermata {

// What a vocabulary has for closing texts. Immutable.
class ClosingTokens {
   public:
    // `vocabulary` outlives this object.
    explicit ClosingTokens(const VocabularyDescription& vocabulary);

    // As Matcher::closing. `delimiters`: texts of the grammar that may end a stretch of free text.
    std::optional<std::vector<Token>> find(Matcher& matcher, std::size_t most,
                                           const std::vector<std::string>& delimiters) const;

   private:
    class Search;

    const VocabularyDescription& vocabulary_;
    std::vector<Token> closers_;                    // in order of preference
    std::vector<Token> fillers_;                    // words, the longest first
    std::unordered_map<std::string, Token> short_;  // of punctuation, a few bytes
};

// The literals of a Lark grammar that are short enough to end a stretch of free text.
std::vector<std::string> literals_of(const std::string& lark);

}  // namespace fermata
