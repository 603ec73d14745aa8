// Sampling by temperature, with bias and penalties. The filters are llama.cpp's, in the order of
// llama-server: penalties, DRY, top_n_sigma, top_k, typical_p, top_p, min_p, XTC, temperature,
// draw. Mirostat takes the place of the filters from top_k on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/request.h"
#include "core/sampler.h"
#include "llama/dry.h"

struct llama_token_data_array;

namespace fermata {

// The last tokens of a sequence and what they cost a candidate.
class Penalties {
   public:
    explicit Penalties(const SamplingParams& params);

    bool active() const { return active_; }
    void observe(Token token);
    // Changes `logits` of the tokens in the window. Not const: works in a scratch buffer.
    void apply(std::span<float> logits);

   private:
    bool active_;
    float repeat_, frequency_, presence_;
    std::vector<Token> window_;  // a ring once it is full
    std::vector<Token> sorted_;
    std::size_t limit_;
    std::size_t oldest_ = 0;
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

   private:
    struct Candidates;

    // What sees every candidate: DRY, top_n_sigma, and a floor that the other filters need.
    void refine(llama_token_data_array& candidates);
    // -1: nothing can be chosen.
    Token choose(std::span<const float> logits, TokenMask mask);

    Token end_token_;
    Penalties penalties_;
    std::vector<std::pair<Token, float>> bias_;  // ids in range only
    float dropped_below_;  // candidates so far under the best one are left out
    float top_n_sigma_;
    SamplerPtr dry_;
    SamplerPtr chain_;
    std::vector<float> adjusted_;
    std::unique_ptr<Candidates> candidates_;
};

}  // namespace fermata
