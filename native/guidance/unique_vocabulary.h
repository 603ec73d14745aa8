// What a vocabulary has for arrays whose items must all differ. Immutable.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/vocabulary_description.h"

namespace fermata {

class UniqueVocabulary {
   public:
    // `described` outlives this object.
    explicit UniqueVocabulary(const VocabularyDescription& described);

    // Without the bytes of what no text matches.
    std::string_view bytes(Token token) const;
    // The tokens whose bytes begin so.
    std::span<const Token> beginning_with(std::string_view bytes) const;
    // Tokens that make up the text: single bytes, as far as there are tokens of them.
    std::vector<Token> spell(std::string_view text) const;

    std::vector<Token> quoted = {};    // with a quote
    std::vector<Token> closing = {};   // of these, with a bracket that closes, too
    std::vector<Token> escaping = {};  // of these, with an escape before the quote
    std::vector<Token> several = {};   // in which more than one item may end
    std::vector<Token> several_quoted = {};
    std::vector<Token> opening =
        {};  // with a first item that may not be one, or with a repeated one
    std::vector<Token> opening_behind_quote = {};
    std::size_t size() const { return described_.tokens.size(); }

   private:
    const VocabularyDescription& described_;
    std::vector<Token> sorted_ = {};
    std::array<std::optional<Token>, 256> single_ = {};
};

}  // namespace fermata
