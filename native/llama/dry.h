// DRY ("don't repeat yourself"): a penalty for tokens that would go on with a repetition.
// llama.cpp's sampler. What it makes of sequence breakers, of which a request has its own, is made
// here: llama.cpp spells the whole vocabulary for each, and tokenizes the rest of it for each token
// that it may begin in.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"
#include "core/types.h"

struct llama_sampler;
struct llama_vocab;

namespace fermata {

struct FreeSampler {
    void operator()(llama_sampler* sampler) const;
};
using SamplerPtr = std::unique_ptr<llama_sampler, FreeSampler>;

class DrySamplers {
   public:
    // `vocab` outlives this object; not what it makes. Null: there are no breakers.
    explicit DrySamplers(const llama_vocab* vocab) : vocab_(vocab) {}

    // nullptr when the penalty is off. The last one is kept, since requests tend to bring the same
    // breakers.
    SamplerPtr make(const DryParams& params);

   private:
    // Of which the first begins a breaker, or has it.
    using Sequences = std::vector<std::vector<Token>>;

    void read_words();
    void add_breaker(std::string_view breaker, Sequences& sequences, std::vector<bool>& alone);
    std::vector<Token> tokens_of(std::string_view text) const;

    const llama_vocab* vocab_;
    std::vector<std::string> words_;                   // by token; read for the first breaker
    std::array<std::vector<Token>, 256> tokens_with_;  // by a byte that is in their words
    DryParams last_params_;
    SamplerPtr last_;
};

}  // namespace fermata
