// The sequences that DRY's breakers stand for are those of llama.cpp. Reads the vocabularies in
// llama.cpp's source.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "check.h"
#include "llama.h"
#include "llama/dry.h"
#include "llama/model.h"

using namespace fermata;

namespace {

std::string folder() {
    for (const std::string base : {"", "../", "../../"}) {
        const std::string path = base + ".cache/llama.cpp/models/";
        if (std::filesystem::exists(path + "ggml-vocab-gpt-2.gguf")) return path;
    }
    return {};
}

SamplerPtr llamas(const llama_vocab* vocab, const DryParams& params) {
    std::vector<const char*> breakers;
    for (const std::string& text : params.sequence_breakers)
        breakers.push_back(text.c_str());
    return SamplerPtr(llama_sampler_init_dry(vocab, params.multiplier, params.base,
                                             params.allowed_length, params.penalty_last_n,
                                             breakers.data(), breakers.size()));
}

std::vector<float> penalties(llama_sampler* dry, std::int32_t vocabulary_size) {
    std::vector<llama_token_data> candidates;
    for (Token token = 0; token < vocabulary_size; ++token)
        candidates.push_back({token, 0.0f, 0.0f});
    llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
    llama_sampler_apply(dry, &array);
    std::vector<float> logits;
    for (const llama_token_data& candidate : candidates)
        logits.push_back(candidate.logit);
    return logits;
}

}  // namespace

TEST(breakers_are_those_of_llama_cpp) {
    const std::vector<std::vector<std::string>> lists = {
        {},
        {"\n", ":", "\"", "*"},
        {"e"},
        {"the end of it all and what came after it did"},
        {" and", "nothing like it", "end. So", "\xC3\xA9t\xC3\xA9"},
    };
    const std::string line = "It was the end of it all and what came after it did end. So: \"";
    for (const char* name : {"gpt-2", "llama-spm", "qwen2"}) {
        ModelOptions options;
        options.path = folder() + "ggml-vocab-" + name + ".gguf";
        options.vocabulary_only = true;
        auto loaded = Model::load(options);
        CHECK(loaded.ok());
        const Model& model = *loaded.value();
        DrySamplers makers(model.vocabulary().handle());
        const auto tokens = model.tokenizer().tokenize(line + line + line, "", false).value();
        for (const auto& breakers : lists) {
            const DryParams params{.multiplier = 1.0f,
                                   .base = 1.5f,
                                   .allowed_length = 1,
                                   .penalty_last_n = 64,
                                   .sequence_breakers = breakers};
            const SamplerPtr ours = makers.make(params);
            const SamplerPtr theirs = llamas(model.vocabulary().handle(), params);
            for (const Token token : tokens) {
                llama_sampler_accept(ours.get(), token);
                llama_sampler_accept(theirs.get(), token);
                if (&token != &tokens.back() && token % 4 != 0) continue;
                CHECK(penalties(ours.get(), model.vocabulary().size()) ==
                      penalties(theirs.get(), model.vocabulary().size()));
            }
        }
    }
}

int main() {
    if (folder().empty()) {
        std::printf("skipped: llama.cpp's source is not in .cache\n");
        return 77;
    }
    return check::run();
}
