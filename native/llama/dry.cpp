#include "llama/dry.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <optional>
#include <utility>

#include "llama-sampler.h"
#include "llama.h"

namespace fermata {

namespace {

// llama.cpp's limits: bytes of a breaker, and tokens of its rest.
constexpr std::size_t kLongestBreaker = 40;
constexpr std::size_t kLongestRest = 20;

}  // namespace

void FreeSampler::operator()(llama_sampler* sampler) const {
    llama_sampler_free(sampler);
}

SamplerPtr DrySamplers::make(const DryParams& params) {
    if (!params.active()) return nullptr;
    if (last_ == nullptr || !(last_params_ == params)) {
        Sequences sequences;
        std::vector<bool> alone;
        for (const std::string& breaker : params.sequence_breakers)
            add_breaker(breaker, sequences, alone);
        // Each sequence of tokens is looked up as often as it is there, and copied with the
        // sampler.
        std::ranges::sort(sequences);
        const auto repeated = std::ranges::unique(sequences);
        sequences.erase(repeated.begin(), repeated.end());
        // It logs that there are no breakers.
        last_.reset(sequences.empty() ? llama_sampler_init_dry(vocab_, params.multiplier,
                                                               params.base, params.allowed_length,
                                                               params.penalty_last_n, nullptr, 0)
                                      : llama_sampler_init_dry_testing(
                                            params.multiplier, params.base, params.allowed_length,
                                            params.penalty_last_n, sequences));
        last_params_ = params;
    }
    return SamplerPtr(llama_sampler_clone(last_.get()));
}

void DrySamplers::read_words() {
    const std::int32_t count = llama_vocab_n_tokens(vocab_);
    std::string buffer(64, '\0');
    for (Token token = 0; token < count; ++token) {
        const auto read = [&] {
            return llama_detokenize(vocab_, &token, 1, buffer.data(),
                                    static_cast<std::int32_t>(buffer.size()), false, true);
        };
        std::int32_t length = read();
        if (length < 0) {
            buffer.resize(static_cast<std::size_t>(-length));
            length = read();
        }
        const std::string& word =
            words_.emplace_back(buffer, 0, static_cast<std::size_t>(std::max(length, 0)));
        std::bitset<256> bytes;
        for (const char letter : word) {
            const auto byte = static_cast<unsigned char>(letter);
            if (!bytes[byte]) tokens_with_[byte].push_back(token);
            bytes.set(byte);
        }
    }
}

// `alone`: of the tokens that break a sequence by themselves.
void DrySamplers::add_breaker(std::string_view breaker, Sequences& sequences,
                              std::vector<bool>& alone) {
    if (breaker.empty()) return;
    if (words_.empty()) read_words();
    alone.resize(words_.size());
    breaker = breaker.substr(0, kLongestBreaker);
    std::array<std::optional<std::vector<Token>>, kLongestBreaker> rests;  // by where they begin
    for (const Token token : tokens_with_[static_cast<unsigned char>(breaker.front())]) {
        const std::string_view word = words_[static_cast<std::size_t>(token)];
        if (word.find(breaker) != word.npos) {
            if (!alone[static_cast<std::size_t>(token)]) sequences.push_back({token});
            alone[static_cast<std::size_t>(token)] = true;
            continue;
        }
        for (std::size_t at = word.find(breaker.front()); at != word.npos;
             at = word.find(breaker.front(), at + 1)) {
            const std::string_view end = word.substr(at);
            if (!breaker.starts_with(end)) continue;
            auto& rest = rests[end.size()];
            if (!rest) rest = tokens_of(breaker.substr(end.size()));
            std::vector<Token>& sequence = sequences.emplace_back();
            sequence.push_back(token);
            sequence.insert(sequence.end(), rest->begin(), rest->end());
        }
    }
}

std::vector<Token> DrySamplers::tokens_of(std::string_view text) const {
    std::vector<Token> tokens(text.size() + 16);
    const std::int32_t count =
        llama_tokenize(vocab_, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                       static_cast<std::int32_t>(tokens.size()), false, false);
    tokens.resize(std::min(static_cast<std::size_t>(std::max(count, 0)), kLongestRest));
    return tokens;
}

}  // namespace fermata
