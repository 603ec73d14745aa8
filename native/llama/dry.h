// DRY ("don't repeat yourself"): a penalty for tokens that would go on with a repetition.
// llama.cpp's sampler, which looks through the whole vocabulary for each list of sequence breakers;
// the last one is kept, since requests tend to bring the same.
#pragma once

#include <memory>

#include "core/request.h"

struct llama_sampler;
struct llama_vocab;

namespace fermata {

struct FreeSampler {
    void operator()(llama_sampler* sampler) const;
};
using SamplerPtr = std::unique_ptr<llama_sampler, FreeSampler>;

class DrySamplers {
   public:
    // `vocab` outlives this object; not what it makes.
    explicit DrySamplers(const llama_vocab* vocab) : vocab_(vocab) {}

    // nullptr when the penalty is off.
    SamplerPtr make(const DryParams& params);

   private:
    const llama_vocab* vocab_;
    DryParams last_params_;
    SamplerPtr last_;
};

}  // namespace fermata
