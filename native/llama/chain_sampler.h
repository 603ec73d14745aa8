// Sampling by temperature, with bias and penalties. The filters are those of llama.cpp, in the
// order of llama-server: penalties, DRY, top_n_sigma, top_k, typical_p, top_p, min_p, XTC,
// temperature, draw. Mirostat takes the place of the filters from top_k on.
//
// llama.cpp's filters want a candidate for each entry of the vocabulary. Here the first filter
// reads the logits where they are, and llama.cpp's get what it leaves. The draw is llama.cpp's, and
// a seed gives the token that llama.cpp's whole chain would give. Two exceptions: among equal
// logits the lower id goes first, and a top_p without top_k may keep one token more or less, where
// llama.cpp's sum of floats is rounded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/logit_view.h"
#include "core/request.h"
#include "core/sampler.h"
#include "llama/dry.h"

namespace fermata {

// How often each of the last tokens of a sequence is among them, ascending by token.
class RecentTokens {
   public:
    explicit RecentTokens(std::int32_t limit) : limit_(static_cast<std::size_t>(limit)) {}

    void push(Token token);
    void clear();
    const std::map<Token, std::int32_t>& counts() const { return counts_; }

   private:
    std::vector<Token> tokens_;  // a ring once it is full
    std::size_t limit_;
    std::size_t oldest_ = 0;
    std::map<Token, std::int32_t> counts_;
};

// What the last tokens cost a candidate.
class Penalties {
   public:
    explicit Penalties(const SamplingParams& params);

    bool active() const { return active_; }
    void observe(Token token) { recent_.push(token); }
    void forget() { recent_.clear(); }
    const std::map<Token, std::int32_t>& counts() const { return recent_.counts(); }
    // Changes the logits of the tokens in counts(); `logits` has all of them, ascending by token.
    void apply(std::span<TokenLogit> logits) const;

   private:
    bool active_;
    float repeat_, frequency_, presence_;
    RecentTokens recent_;
};

// The same seed and logits give the same tokens. A bias of -100 or less bans a token. Logits that
// are not numbers are never chosen; when nothing can be, the end token is, or with a mask the
// allowed token of the highest logit.
class ChainSampler final : public Sampler {
   public:
    // `dry` belongs to this sequence alone; nullptr: no such penalty.
    ChainSampler(const SamplingParams& params, std::int32_t vocabulary_size, Token end_token,
                 SamplerPtr dry = nullptr);
    ~ChainSampler() override;

    Token sample(std::span<const float> logits, TokenMask mask = {}) override;
    void observe(std::span<const Token> tokens) override;
    void observe_anew(std::span<const Token> tokens) override;
    void skip(Token token) override;
    void begin_round(std::int32_t position) override;
    TokenLogprobs draw(Token token, std::int32_t top) const override;

   private:
    struct Candidates;

    // Logits with bias, penalties and DRY, of the tokens that those may change.
    void make_changes(std::span<const float> logits);
    void apply_dry();
    void find_candidates(const LogitView& view);
    void find_likely(const LogitView& view);
    // -1: nothing can be chosen.
    Token choose(const LogitView& view);

    SamplingParams params_;  // bias of ids in range only
    std::size_t vocabulary_size_;
    Token end_token_;
    Penalties penalties_;
    SamplerPtr dry_;
    RecentTokens dry_tokens_;
    SamplerPtr chain_;
    std::vector<Token> touched_;
    std::vector<TokenLogit> changes_;
    std::vector<TokenLogit> found_;
    std::unique_ptr<Candidates> candidates_;
};

}  // namespace fermata
