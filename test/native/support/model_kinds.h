// Every kind of model whose cache cannot be cut anywhere, in both layouts, and texts for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "random_models.h"
#include "real_model.h"

namespace fermata::testing {

inline std::vector<std::string> given;  // models in the place of the random ones

inline std::vector<Token> words(std::int32_t seed, std::int32_t count) {
    std::vector<Token> tokens;
    for (std::int32_t at = 0; at < count; ++at)
        tokens.push_back(word(seed, at));
    return tokens;
}

inline std::vector<Token> joined(std::vector<Token> first, const std::vector<Token>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

using Body = void (*)(CacheLayout);

inline void for_each_kind(Body body) {
    std::vector<std::string> paths = given;
    for (const Kind kind : {Kind::kSlidingWindow, Kind::kHybrid, Kind::kDeltaNet,
                            Kind::kDeltaNetWithExperts, Kind::kMambaHybrid, Kind::kRecurrent})
        if (given.empty()) paths.push_back(RandomModel(kind).write());
    for (const std::string& path : paths) {
        auto loaded =
            Model::load({.path = path, .gpu_layers = test_gpu_layers(), .on_progress = {}});
        if (!loaded.ok()) check::fail(__FILE__, __LINE__, loaded.error().message);
        model = loaded.value();
        for (const CacheLayout layout : {CacheLayout::kStreams, CacheLayout::kUnified}) {
            std::printf("  %s, %s\n", model->info().architecture.c_str(),
                        layout == CacheLayout::kStreams ? "streams" : "unified");
            body(layout);
        }
        model.reset();
    }
}

inline float distance(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 0.0f;
    for (std::size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

// Unified: other cells lie between, so sums round differently, far less than another text would. So
// they do where a window that had come round its cells was moved: its order is another one.
inline void expect_equal(CacheLayout layout, const std::vector<float>& actual,
                         const std::vector<float>& expected, const std::vector<float>& other) {
    const bool moves = model->shape().sliding_window > 0;
    CHECK(layout == CacheLayout::kUnified || moves || actual == expected);
    CHECK(distance(actual, expected) * 20 < distance(actual, other));
}

}  // namespace fermata::testing
