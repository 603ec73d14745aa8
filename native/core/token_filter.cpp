#include "core/token_filter.h"

#include <algorithm>

namespace fermata {

namespace {

void set(std::vector<std::uint32_t>& mask, Token token, bool allowed) {
    const auto id = static_cast<std::size_t>(token);
    if (token < 0 || id / kMaskWordBits >= mask.size()) return;
    const std::uint32_t bit = 1u << (id % kMaskWordBits);
    std::uint32_t& word = mask[id / kMaskWordBits];
    word = allowed ? word | bit : word & ~bit;
}

bool any(TokenMask mask) {
    return std::ranges::any_of(mask, [](std::uint32_t word) { return word != 0; });
}

}  // namespace

bool TokenFilter::stops(Token token) const {
    return std::ranges::find(rules_.stop_tokens, token) != rules_.stop_tokens.end();
}

// What does not change with the text.
void TokenFilter::make_masks(const Backend& backend, std::size_t vocabulary_size) {
    allowed_.assign(mask_words(vocabulary_size), 0);
    const bool all = rules_.allowed.empty();
    for (std::size_t id = 0; all && id < vocabulary_size; ++id)
        set(allowed_, static_cast<Token>(id), true);
    for (const Token token : rules_.allowed)
        set(allowed_, token, true);
    for (const auto& tokens : rules_.banned) {
        if (tokens.size() == 1) set(allowed_, tokens.front(), false);
    }
    if (rules_.min_tokens <= 0) return;
    ends_ = rules_.stop_tokens;
    for (std::size_t id = 0; id < vocabulary_size; ++id) {
        if (backend.is_end(static_cast<Token>(id))) ends_.push_back(static_cast<Token>(id));
    }
}

TokenMask TokenFilter::mask(TokenMask grammar, std::span<const Token> round, std::int32_t generated,
                            const Backend& backend, std::size_t vocabulary_size) {
    const bool early = !hears_stops(generated);
    if (rules_.allowed.empty() && rules_.banned.empty() && !early) return grammar;
    if (allowed_.empty()) make_masks(backend, vocabulary_size);
    mask_ = allowed_;
    for (const auto& tokens : rules_.banned) {
        if (tokens.size() < 2 || tokens.size() > round.size() + 1) continue;
        const auto before = std::span(tokens).first(tokens.size() - 1);
        if (std::ranges::equal(before, round.last(before.size()))) set(mask_, tokens.back(), false);
    }
    if (early) {
        for (const Token token : ends_)
            set(mask_, token, false);
    }
    for (std::size_t word = 0; word < std::min(grammar.size(), mask_.size()); ++word)
        mask_[word] &= grammar[word];
    return any(mask_) ? TokenMask(mask_) : grammar;
}

}  // namespace fermata
