#include "core/samplers.h"

#include <algorithm>
#include <limits>
#include <random>

#include "check.h"

using namespace fermata;

TEST(greedy_takes_the_highest_and_of_equals_the_lowest_id) {
    GreedySampler greedy;
    CHECK_EQ(greedy.sample(std::vector{1.0f, 3.0f, 3.0f, 2.0f}), 1);
    CHECK_EQ(greedy.sample(std::vector{-5.0f, -2.0f, -9.0f}), 1);
    std::vector<float> flat(500, 0.5f);
    CHECK_EQ(greedy.sample(flat), 0);
    flat[64] = flat[499] = 1.0f;  // first of a block, last of all
    CHECK_EQ(greedy.sample(flat), 64);
    flat[499] = 2.0f;
    CHECK_EQ(greedy.sample(flat), 499);
}

TEST(greedy_never_takes_what_is_not_a_number) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    GreedySampler greedy;
    CHECK_EQ(greedy.sample(std::vector{kNan, kNever, -1.0f, kNan}), 2);
    CHECK_EQ(greedy.sample(std::vector{kNever, kNever}), 0);
    CHECK_EQ(greedy.sample({}), 0);
}

TEST(greedy_agrees_with_a_plain_search_at_every_size) {
    std::mt19937 random(3);
    for (std::size_t size = 1; size < 300; ++size) {
        std::vector<float> logits(size);
        for (float& logit : logits)
            logit = static_cast<float>(random() % 40) - 20.0f;
        const auto expected = std::ranges::max_element(logits) - logits.begin();
        CHECK_EQ(GreedySampler().sample(logits), static_cast<Token>(expected));
    }
}

TEST(a_script_is_followed_by_the_end_token) {
    ScriptedSampler scripted({5, 7}, 2);
    for (const Token expected : {5, 7, 2, 2})
        CHECK_EQ(scripted.sample({}), expected);
}

TEST(behind_a_script_the_other_sampler_goes_on) {
    ScriptedSampler scripted({5, 7}, 2, std::make_unique<GreedySampler>());
    const std::vector logits{0.0f, 3.0f, 1.0f};
    for (const Token expected : {5, 7, 1, 1})
        CHECK_EQ(scripted.sample(logits), expected);
}

TEST_MAIN()
