// Log-probabilities against sums made the plain way, and their way through the scheduler.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double plain_logprob(const std::vector<float>& logits, std::size_t id) {
    double sum = 0.0;
    for (const float logit : logits)
        sum += std::exp(static_cast<double>(logit));
    return static_cast<double>(logits[id]) - std::log(sum);
}

bool near(double a, double b) {
    return std::abs(a - b) < 1e-5;
}

}  // namespace

TEST(logprobs_are_those_of_a_softmax) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0.0f, 4.0f);
    std::vector<float> logits(5000);
    for (float& logit : logits)
        logit = normal(random);
    const TokenLogprobs found = logprobs_of(logits, 17, 20);
    CHECK(near(found.logprob, plain_logprob(logits, 17)));
    CHECK_EQ(found.top.size(), 20u);
    std::vector<float> sorted = logits;
    std::ranges::sort(sorted, std::greater());
    for (std::size_t i = 0; i < 20; ++i) {
        const auto id = static_cast<std::size_t>(found.top[i].first);
        CHECK_EQ(logits[id], sorted[i]);
        CHECK(near(found.top[i].second, plain_logprob(logits, id)));
    }
}

TEST(of_equals_the_lower_id_comes_first) {
    const TokenLogprobs found = logprobs_of(std::vector{1.0f, 2.0f, 2.0f, 2.0f, 0.0f}, 3, 2);
    CHECK_EQ(found.top[0].first, 1);
    CHECK_EQ(found.top[1].first, 2);
    CHECK(logprobs_of(std::vector{1.0f, 2.0f}, 0, 0).top.empty());
    CHECK_EQ(logprobs_of(std::vector{1.0f, 2.0f}, 0, 9).top.size(), 2u);
}

TEST(logits_that_are_no_numbers_have_no_probability) {
    const std::vector<float> broken = {kNan, -kInfinity, 1.0f, 1.0f};
    const TokenLogprobs found = logprobs_of(broken, 0, 4);
    CHECK_EQ(found.logprob, -kInfinity);
    CHECK_EQ(found.top.size(), 2u);
    CHECK(near(found.top[0].second, std::log(0.5)));
    CHECK_EQ(logprobs_of(broken, 1, 0).logprob, -kInfinity);
    for (const float all : {kNan, -kInfinity, kInfinity}) {
        const TokenLogprobs nothing = logprobs_of(std::vector{all, all}, 0, 3);
        CHECK_EQ(nothing.logprob, -kInfinity);
        CHECK(nothing.top.empty());
    }
    CHECK_EQ(logprobs_of(broken, -1, 0).logprob, -kInfinity);
    CHECK_EQ(logprobs_of({}, 3, 2).logprob, -kInfinity);
}

TEST(every_sampled_token_brings_its_own) {
    World world(streams(4));
    const auto prompt = words(1, 50);
    SubmitRequest request{.prompt = prompt, .limits = {.max_tokens = 8}};
    request.top_logprobs = 3;
    const SequenceId asked = world.submit(request);
    world.submit(prompt, 8);
    std::vector<Token> told;
    while (world.scheduler.step(0)) {
        for (const Event& event : world.scheduler.take_events().events) {
            if (event.kind != EventKind::kTokens) continue;
            CHECK_EQ(event.logprobs.size(), event.id == asked ? event.tokens.size() : 0u);
            for (const TokenLogprobs& logprobs : event.logprobs) {
                // Greedy: the token is the likeliest one.
                CHECK_EQ(logprobs.top.front().first, event.tokens.front());
                CHECK_EQ(logprobs.top.front().second, logprobs.logprob);
                told.push_back(logprobs.top.front().first);
            }
        }
    }
    CHECK_EQ(told, world.reference(prompt, 8));
}

TEST_MAIN()
