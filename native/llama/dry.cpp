#include "llama/dry.h"

#include <vector>

#include "llama.h"

namespace fermata {

void FreeSampler::operator()(llama_sampler* sampler) const {
    llama_sampler_free(sampler);
}

SamplerPtr DrySamplers::make(const DryParams& params) {
    if (!params.active()) return nullptr;
    if (last_ == nullptr || !(last_params_ == params)) {
        std::vector<const char*> breakers;
        for (const std::string& text : params.sequence_breakers)
            breakers.push_back(text.c_str());
        last_.reset(llama_sampler_init_dry(vocab_, params.multiplier, params.base,
                                           params.allowed_length, params.penalty_last_n,
                                           breakers.data(), breakers.size()));
        last_params_ = params;
    }
    return SamplerPtr(llama_sampler_clone(last_.get()));
}

}  // namespace fermata
