// The real model of a test program: FERMATA_TEST_MODEL, or the first argument. Without one, its
// tests are skipped.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "check.h"
#include "llama/llama_backend.h"
#include "test_device.h"

namespace fermata::testing {

inline std::shared_ptr<const Model> model;
inline std::string model_path;
inline std::string program;

// A token of an endless text; the first tokens of a vocabulary are special ones or bytes.
inline Token word(std::int32_t seed, std::int32_t at) {
    return 300 + (seed * 7919 + at * 104729) % (model->vocabulary().size() - 300);
}

inline int run_on_model(int count, char** arguments) {
    const char* named = count > 1 ? arguments[1] : std::getenv("FERMATA_TEST_MODEL");
    ModelOptions options;
    options.gpu_layers = test_gpu_layers();
    options.path = named != nullptr ? named : "models/fermata-small.gguf";
    auto outcome = Model::load(options);
    if (!outcome.ok()) {
        std::printf("skipped: %s Set FERMATA_TEST_MODEL.\n", outcome.error().message.c_str());
        return named == nullptr ? 77 : 1;
    }
    model = outcome.value();
    model_path = options.path;
    program = arguments[0];
    const int result = check::run();
    model.reset();
    return result;
}

}  // namespace fermata::testing

#define MODEL_TEST_MAIN()                                        \
    int main(int count, char** arguments) {                      \
        return fermata::testing::run_on_model(count, arguments); \
    }
