// Which tokens a sequence may sample beside its grammar, and which of them end it: a client's lists
// of allowed and banned tokens, and the least length of the text. Part of a hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "core/request.h"
#include "core/token_mask.h"
#include "core/types.h"

namespace fermata {

class TokenFilter {
   public:
    explicit TokenFilter(TokenRules rules) : rules_(std::move(rules)) {}

    // Of the token behind `round`, what was generated in this round; `generated` tokens were in
    // all. Empty: any. Valid until the next call. Where the rules leave none of what the grammar
    // allows, the grammar alone counts.
    TokenMask mask(TokenMask grammar, std::span<const Token> round, std::int32_t generated,
                   const Backend& backend, std::size_t vocabulary_size);

    // It ends the text as an end token does.
    bool stops(Token token) const;
    // A stop string that the next token completes counts.
    bool hears_stops(std::int32_t generated) const { return generated >= rules_.min_tokens; }
    bool keeps_stop() const { return rules_.keeps_stop; }

   private:
    void make_masks(const Backend& backend, std::size_t vocabulary_size);

    TokenRules rules_;
    std::vector<std::uint32_t> allowed_;  // empty: not made yet
    std::vector<Token> ends_;             // of the model and of the request
    std::vector<std::uint32_t> mask_;
};

}  // namespace fermata
