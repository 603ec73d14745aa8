// The logits that a token may be chosen from, without a copy of them: those that a mask allows,
// with a few that bias or penalties have changed. What is not a number, or minus infinity, is never
// found. Read block by block, so that the compiler can use vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/token_mask.h"
#include "core/types.h"

namespace fermata {

using TokenLogit = std::pair<Token, float>;

class LogitView {
   public:
    // `changes` replace logits; ascending by token, each token once and within `logits`. All three
    // outlive the view.
    explicit LogitView(std::span<const float> logits, TokenMask mask = {},
                       std::span<const TokenLogit> changes = {})
        : logits_(logits), mask_(mask), changes_(changes) {}

    // Minus infinity when there is none.
    float highest() const;
    // The sum of exp(logit - highest); `highest` is finite. Exact to about 1e-7 of it.
    double sum_of_exp(float highest) const;
    // The `count` highest, fewer if there are fewer, the highest first; among equals the lower id
    // comes first.
    void find_top(std::size_t count, std::vector<TokenLogit>& found) const;
    // Those of `lowest` or more, ascending by token.
    void find_from(float lowest, std::vector<TokenLogit>& found) const;

   private:
    // Calls visit(first token, its block of logits); what is not allowed is minus infinity.
    template <class Visit>
    void for_each_block(Visit visit) const;

    std::span<const float> logits_;
    TokenMask mask_;
    std::span<const TokenLogit> changes_;
};

}  // namespace fermata
