// time_samplers [VOCABULARY]: what sampling costs a step of eight sequences, on made-up logits.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/logprobs.h"
#include "llama/chain_sampler.h"

using namespace fermata;

namespace {

constexpr std::size_t kSequences = 8;
constexpr int kSteps = 25;

// Of the processor, so that other programs count for little.
double microseconds_of(auto work) {
    const std::clock_t begin = std::clock();
    work();
    return static_cast<double>(std::clock() - begin) * 1e6 / CLOCKS_PER_SEC;
}

void report(const char* name, auto step) {
    std::vector<double> times;
    for (int i = 0; i < kSteps; ++i)
        times.push_back(microseconds_of(step));
    std::ranges::sort(times);
    std::printf("%-34s %8.0f us a step, best %8.0f\n", name, times[kSteps / 2], times[0]);
}

}  // namespace

int main(int count, char** arguments) {
    const int vocabulary = count > 1 ? std::atoi(arguments[1]) : 151'936;  // Qwen2.5's
    if (vocabulary < 100) {
        std::fprintf(stderr, "usage: time_samplers [VOCABULARY]\n");
        return 2;
    }
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0f, 2.0f);
    std::vector<std::vector<float>> rows(kSequences);
    for (auto& row : rows) {
        row.resize(static_cast<std::size_t>(vocabulary));
        for (float& logit : row)
            logit = normal(random);
        for (int i = 0; i < 40; ++i)  // as of a text: some tokens are likely
            row[random() % row.size()] = 16.0f + normal(random);
    }
    std::vector<std::uint32_t> text(mask_words(rows[0].size()), 0xFFFFFFFFu);
    for (std::uint32_t& word : text)
        word &= ~(1u << random() % 32);
    std::vector<std::uint32_t> few(text.size());
    for (int i = 0; i < 20; ++i)
        few[random() % few.size()] |= 1u << random() % 32;

    std::printf("%d logits, %zu sequences, median of %d steps\n", vocabulary, kSequences, kSteps);
    const auto time = [&](const char* name, const SamplingParams& params, TokenMask mask = {}) {
        DrySamplers makers(nullptr);
        std::vector<std::unique_ptr<ChainSampler>> samplers;
        for (const auto& row : rows) {
            samplers.push_back(
                std::make_unique<ChainSampler>(params, vocabulary, 0, makers.make(params.dry)));
            for (int i = 0; i < 200; ++i) {
                const auto token = static_cast<Token>(random() % row.size());
                samplers.back()->observe(std::span(&token, 1));
            }
        }
        report(name, [&] {
            for (std::size_t i = 0; i < kSequences; ++i) {
                const Token token = samplers[i]->sample(rows[i], mask);
                samplers[i]->observe(std::span(&token, 1));
            }
        });
    };
    SamplingParams warm;
    warm.temperature = 0.8f;
    SamplingParams usual = warm;
    usual.top_k = 40;
    usual.top_p = 0.95f;
    time("top_k 40, top_p 0.95", usual);
    time("  with the mask of a text", usual, text);
    time("  with a mask of few tokens", usual, few);
    SamplingParams penalized = usual;
    penalized.repeat_penalty = 1.1f;
    penalized.logit_bias = {{5, 1.0f}, {6, -100.0f}};
    time("  with penalties and bias", penalized);
    SamplingParams dry = usual;
    dry.dry.multiplier = 0.8f;
    time("  with DRY", dry);
    SamplingParams min_p = warm;
    min_p.min_p = 0.05f;
    time("min_p 0.05", min_p);
    SamplingParams top_p = warm;
    top_p.top_p = 0.95f;
    time("top_p 0.95", top_p);
    time("  with the mask of a text", top_p, text);
    time("temperature alone", warm);
    SamplingParams greedy;
    greedy.logit_bias = {{5, 1.0f}};
    time("greedy with a bias", greedy);
    for (const std::int32_t top : {0, 20}) {
        const std::string name = "logprobs, top " + std::to_string(top);
        report(name.c_str(), [&] {
            for (const auto& row : rows)
                logprobs_of(row, 5, top);
        });
    }
    return 0;
}
