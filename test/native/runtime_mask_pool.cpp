// Masks made beside the inference thread. Also run under ThreadSanitizer.
#include <chrono>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "fake_matcher.h"
#include "runtime/engine_loop.h"
#include "runtime/mask_pool.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

std::vector<std::shared_ptr<const FakeGrammar>> many_grammars(int count) {
    std::vector<std::shared_ptr<const FakeGrammar>> grammars;
    for (int i = 0; i < count; ++i)
        grammars.push_back(texts({"a" + std::to_string(i), "b"}));
    return grammars;
}

}  // namespace

TEST(every_guide_is_prepared_once_a_round_whatever_the_number_of_threads) {
    for (const int threads : {0, 1, 3}) {
        MaskPool pool(threads);
        const auto grammars = many_grammars(20);
        std::vector<std::unique_ptr<Guide>> guides;
        std::vector<Guide*> all;
        for (const auto& grammar : grammars)
            all.push_back(guides.emplace_back(std::make_unique<Guide>(grammar)).get());
        for (int round = 0; round < 2; ++round) {
            pool.start(all);
            pool.finish();
            for (Guide* guide : all) {
                CHECK_EQ(guide->error(), std::string());
                CHECK(allows(guide->mask(), round == 0 ? 'b' : '0') || round == 1);
                if (round == 0) CHECK(guide->consume('a'));
            }
        }
        for (const auto& grammar : grammars)
            CHECK_EQ(grammar->masks(), 2);
    }
}

TEST(a_mask_that_a_thread_of_the_pool_has_is_waited_for) {
    MaskPool pool(1);
    const auto here = std::this_thread::get_id();
    std::latch both(2);
    const auto slow_elsewhere = [&] {
        both.arrive_and_wait();
        if (std::this_thread::get_id() != here)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    const auto grammar = std::make_shared<const FakeGrammar>(
        FakeGrammarOptions{.texts = {"a"}, .before_mask = slow_elsewhere});
    Guide one(grammar), other(grammar);
    const std::vector<Guide*> guides{&one, &other};
    pool.start(guides);
    pool.finish();
    CHECK_EQ(grammar->masks(), 2);
    CHECK(allows(one.mask(), 'a') && allows(other.mask(), 'a'));
}

TEST(a_pool_may_start_with_nothing_and_end_at_once) {
    const MaskPool unused(4);
    MaskPool pool(2);
    pool.start({});
    pool.finish();
}

TEST(an_error_in_a_thread_is_the_guides) {
    MaskPool pool(2);
    Guide guide(std::make_shared<const FakeGrammar>(
        FakeGrammarOptions{.texts = {"a"}, .has_memory = false}));
    Guide* one = &guide;
    pool.start(std::span(&one, 1));
    pool.finish();
    CHECK(!guide.error().empty());
}

TEST(guided_sequences_run_resume_and_close_on_the_loop) {
    const auto grammar = texts({"<tool_call>a</tool_call>", "<tool_call>bbbb</tool_call>"});
    EngineLoop loop(
        std::make_unique<FakeBackend>(streams(8)),
        {.scheduler = {.parallel = 4, .step_token_budget = 64}, .mask_threads = 2}, [] {}, [] {});
    for (SequenceId id = 1; id <= 12; ++id) {
        SubmitRequest request{.id = id, .prompt = words(static_cast<std::uint32_t>(id), 30)};
        request.pause.hold_at_end = PauseTriggers::HoldAtEnd::kAlways;
        if (id % 3 != 0) request.grammar = grammar;
        request.limits.max_tokens = 200;
        CHECK(loop.submit(std::move(request)) == EngineLoop::Accept::kOk);
    }
    int held = 0;
    int resumed = 0;
    while (resumed < 8) {
        for (const Event& event : loop.take_events().events) {
            if (event.kind != EventKind::kToolCallPause || ++held > 8) continue;
            CHECK(loop.resume({.id = event.id,
                               .tokens = words(3, 4),
                               .grammar = texts({"done", "over"})}) == EngineLoop::Accept::kOk);
            ++resumed;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    loop.close();
}

TEST_MAIN()
