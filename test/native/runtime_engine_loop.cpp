// The inference thread from outside: many callers, holds, bounds, close at any moment. Also run
// under ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "check.h"
#include "fake_backend.h"
#include "no_threads.h"
#include "runtime/engine_loop.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

// Collects events on its own thread, as the JavaScript side does.
class Listener {
   public:
    explicit Listener(LoopConfig config = {.scheduler = {.parallel = 4, .step_token_budget = 64}},
                      CacheShape shape = streams(8), std::unique_ptr<Backend> backend = nullptr)
        : reference(shape),
          loop(
              backend ? std::move(backend) : std::make_unique<FakeBackend>(shape), config,
              [this] { wake(); }, [this] { aborted = true; }) {}

    // Waits until the sequence is held, finished or failed (again).
    EventKind wait_for_end(SequenceId id) {
        std::unique_lock lock(mutex_);
        while (true) {
            const auto found = ends_.find(id);
            if (found != ends_.end()) {
                const EventKind kind = found->second;
                ends_.erase(found);
                return kind;
            }
            const bool woken =
                condition_.wait_for(lock, std::chrono::seconds(60), [this] { return woken_; });
            if (!woken) check::fail(__FILE__, __LINE__, "no event for 60 seconds");
            woken_ = false;
            lock.unlock();
            take();
            lock.lock();
        }
    }

    void take() {
        EventBatch batch = loop.take_events();
        const std::lock_guard lock(mutex_);
        for (Event& event : batch.events) {
            auto& sampled = tokens[event.id];
            sampled.insert(sampled.end(), event.tokens.begin(), event.tokens.end());
            if (event.kind == EventKind::kToolCallPause || event.kind == EventKind::kFinished ||
                event.kind == EventKind::kFailed) {
                ends_[event.id] = event.kind;
            }
            if (event.kind == EventKind::kExtended) extended[event.id] = event.prefill_done;
        }
        condition_.notify_all();
    }

    FakeBackend reference;
    std::map<SequenceId, std::vector<Token>> tokens;
    std::map<SequenceId, std::int32_t> extended;
    std::atomic<bool> aborted = false;

   private:
    void wake() {
        const std::lock_guard lock(mutex_);
        woken_ = true;
        condition_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable condition_;
    bool woken_ = false;
    std::map<SequenceId, EventKind> ends_;

   public:
    EngineLoop loop;  // last: its thread uses the rest
};

// A fault: there is no memory for any token's spelling.
class PoorBackend final : public FakeBackend {
   public:
    using FakeBackend::FakeBackend;
    std::string spelled_piece(Token) const override { throw std::bad_alloc(); }
};

// Its second call ends when nobody wants it any more.
class SlowBackend final : public FakeBackend {
   public:
    using FakeBackend::FakeBackend;
    DecodeStatus decode(std::span<const BatchRow> rows) override {
        if (++calls_ == 2) {
            in_second_call.count_down();
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
            while (!is_unwanted_() && std::chrono::steady_clock::now() < end)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            interrupted = is_unwanted_();
            if (interrupted) return DecodeStatus::kInterrupted;
        }
        return FakeBackend::decode(rows);
    }
    void interrupt_when(std::function<bool()> is_unwanted) override {
        is_unwanted_ = std::move(is_unwanted);
    }

    std::latch in_second_call{1};
    std::atomic<bool> interrupted = false;

   private:
    int calls_ = 0;
    std::function<bool()> is_unwanted_;
};

SubmitRequest request(SequenceId id, std::uint32_t seed, std::int32_t max_tokens) {
    return {.id = id, .prompt = words(seed, 50), .limits = {.max_tokens = max_tokens}};
}

}  // namespace

TEST(a_generation_runs_to_its_end) {
    Listener listener;
    CHECK(listener.loop.submit(request(1, 5, 20)) == EngineLoop::Accept::kOk);
    CHECK(listener.wait_for_end(1) == EventKind::kFinished);
    auto history = words(5, 50);
    for (const Token token : listener.tokens[1]) {
        CHECK_EQ(token, listener.reference.next_token(history));
        history.push_back(token);
    }
    CHECK_EQ(listener.tokens[1].size(), 20u);
}

TEST(only_a_held_sequence_resumes_and_only_once) {
    Listener listener;
    SubmitRequest scripted = request(1, 5, -1);
    scripted.sampling.script = std::vector<Token>{kCallOpen, 'a', kCallClose, kTurn};
    scripted.pause = {.call_open = "<tool_call>",
                      .call_close = "</tool_call>",
                      .hold_at_end = PauseTriggers::HoldAtEnd::kAfterCall};
    CHECK(listener.loop.resume({.id = 1, .tokens = {'x'}}) == EngineLoop::Accept::kNotHeld);
    listener.loop.submit(scripted);
    CHECK(listener.wait_for_end(1) == EventKind::kToolCallPause);
    CHECK(listener.loop.resume({.id = 1, .tokens = {'x'}, .max_tokens = 3}) ==
          EngineLoop::Accept::kOk);
    CHECK(listener.loop.resume({.id = 1, .tokens = {'x'}}) == EngineLoop::Accept::kNotHeld);
    CHECK(listener.wait_for_end(1) == EventKind::kFinished);
}

TEST(only_a_held_sequence_is_extended) {
    Listener listener;
    listener.loop.extend({.id = 1, .tokens = {'x'}});
    SubmitRequest holding = request(1, 5, -1);
    holding.sampling.script = std::vector<Token>{kTurn};
    holding.pause = {.hold_at_end = PauseTriggers::HoldAtEnd::kAlways};
    listener.loop.submit(holding);
    CHECK(listener.wait_for_end(1) == EventKind::kToolCallPause);
    const auto result = words(9, 300);
    for (std::size_t count = 10; count <= 300; count += 10)
        listener.loop.extend(
            {.id = 1, .tokens = {result.begin(), result.begin() + static_cast<long>(count)}});
    while (listener.extended[1] < 300) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        listener.take();
    }
    listener.loop.extend({.id = 1, .tokens = words(10, 50)});
    CHECK(listener.loop.resume({.id = 1, .tokens = result, .max_tokens = 3}) ==
          EngineLoop::Accept::kOk);
    listener.loop.extend({.id = 1, .tokens = words(10, 50)});
    CHECK(listener.wait_for_end(1) == EventKind::kToolCallPause);
    // Counted before the second hold ends: the last extend may have come to it, as is its right.
    CHECK_EQ(listener.loop.stats().resumed_tokens, 301);
    listener.loop.release(1);
    CHECK(listener.wait_for_end(1) == EventKind::kFinished);
    CHECK_EQ(listener.loop.stats().cells_used, 0);
}

TEST(the_queue_is_bounded) {
    Listener listener({.scheduler = {.parallel = 1, .step_token_budget = 64}, .max_queue = 3});
    int accepted = 0;
    int refused = 0;
    for (SequenceId id = 1; id <= 50; ++id) {
        SubmitRequest endless = request(id, static_cast<std::uint32_t>(id), 400);
        endless.limits.window = 1;  // nobody acknowledges: no sequence ends and makes room
        const auto accept = listener.loop.submit(std::move(endless));
        accepted += accept == EngineLoop::Accept::kOk;
        refused += accept == EngineLoop::Accept::kQueueFull;
    }
    CHECK_EQ(accepted + refused, 50);
    CHECK(accepted >= 3);
    CHECK(refused > 0);
}

TEST(without_a_queue_a_free_place_is_given) {
    Listener listener({.scheduler = {.parallel = 1, .step_token_budget = 64}, .max_queue = 0});
    for (SequenceId id = 1; id <= 2; ++id) {
        SubmitRequest endless = request(id, 1, 400);
        endless.limits.window = 1;  // nobody acknowledges: it keeps its place until it is cancelled
        CHECK(listener.loop.submit(std::move(endless)) == EngineLoop::Accept::kOk);
        CHECK(listener.loop.submit(request(id + 10, 1, 5)) == EngineLoop::Accept::kQueueFull);
        listener.loop.cancel(id);
        CHECK(listener.wait_for_end(id) == EventKind::kFinished);
    }
}

TEST(close_fails_what_is_left_and_is_idempotent) {
    Listener listener;
    for (SequenceId id = 1; id <= 6; ++id)
        listener.loop.submit(request(id, static_cast<std::uint32_t>(id), 400));
    listener.loop.close();
    listener.loop.close();
    CHECK(listener.aborted);
    for (SequenceId id = 1; id <= 6; ++id) {
        const EventKind kind = listener.wait_for_end(id);
        CHECK(kind == EventKind::kFailed || kind == EventKind::kFinished);
    }
    CHECK(listener.loop.submit(request(9, 1, 1)) == EngineLoop::Accept::kClosed);
    bool told = false;
    listener.loop.check_integrity([&told](const std::string& wrong) { told = wrong.empty(); });
    CHECK(told);
}

TEST(a_cancel_ends_the_decode_call_of_its_sequence) {
    auto owned = std::make_unique<SlowBackend>(streams(8));
    SlowBackend& backend = *owned;
    Listener listener({.scheduler = {.parallel = 4, .step_token_budget = 16}, .audit = true},
                      streams(8), std::move(owned));
    listener.loop.submit(request(1, 5, 20));
    backend.in_second_call.wait();
    listener.loop.cancel(1);
    CHECK(listener.wait_for_end(1) == EventKind::kFinished);
    CHECK(backend.interrupted);
    // What was computed before is there, and nothing of the call that was interrupted.
    listener.loop.submit(request(2, 5, 20));
    CHECK(listener.wait_for_end(2) == EventKind::kFinished);
    CHECK_EQ(listener.loop.stats().audited_rows, 50 + 19);
}

TEST(a_step_shows_its_age) {
    Listener listener;
    const auto age = [&] { return listener.loop.stats().step_age_ms; };
    const auto until = [](auto condition) {
        while (!condition())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    until([&] { return age() == 0; });
    std::latch hung(1);
    listener.loop.check_integrity([&](const std::string&) { hung.wait(); });
    until([&] { return age() >= 30; });
    const Milliseconds before = age();
    until([&] { return age() > before; });
    hung.count_down();
    CHECK(listener.loop.submit(request(1, 5, 20)) == EngineLoop::Accept::kOk);
    CHECK(listener.wait_for_end(1) == EventKind::kFinished);
    until([&] { return age() == 0; });
}

TEST(a_command_that_throws_does_not_take_those_behind_it_along) {
    Listener listener({.scheduler = {.parallel = 4, .step_token_budget = 64}}, streams(8),
                      std::make_unique<PoorBackend>(streams(8)));
    std::latch posted(1);
    listener.loop.check_integrity([&](const std::string&) { posted.wait(); });
    SubmitRequest costly = request(1, 5, 20);
    costly.spelled_tokens = {kCallOpen};
    listener.loop.submit(costly);
    listener.loop.submit(request(2, 6, 20));
    listener.loop.submit(request(3, 7, 20));
    posted.count_down();
    CHECK(listener.wait_for_end(1) == EventKind::kFailed);
    CHECK(listener.wait_for_end(2) == EventKind::kFinished);
    CHECK(listener.wait_for_end(3) == EventKind::kFinished);
}

TEST(many_threads_may_ask_at_once) {
    Listener listener(
        {.scheduler = {.parallel = 4, .step_token_budget = 64}, .max_queue = 1000, .audit = true});
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
        threads.emplace_back([&listener, t] {
            for (std::uint32_t i = 0; i < 25; ++i) {
                const SequenceId id = t * 100 + i + 1;
                listener.loop.submit(request(id, t * 7 + i % 5, 12));
                if (i % 4 == 0) listener.loop.cancel(id);
                if (i % 4 == 1) listener.loop.pause(id);
                if (i % 4 == 1) listener.loop.release(id);
                if (i % 4 == 1) listener.loop.extend({.id = id, .tokens = words(t, 40)});
                listener.loop.acknowledge(id, 1);
                static_cast<void>(listener.loop.stats());
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (SequenceId t = 0; t < 4; ++t) {
        for (SequenceId i = 0; i < 25; ++i) {
            const SequenceId id = t * 100 + i + 1;
            if (listener.wait_for_end(id) == EventKind::kToolCallPause) {
                listener.loop.release(id);
                CHECK(listener.wait_for_end(id) == EventKind::kFinished);
            }
        }
    }
    std::atomic<bool> sound = false;
    std::atomic<bool> done = false;
    listener.loop.check_integrity([&](const std::string& wrong) {
        sound = wrong.empty();
        done = true;
    });
    while (!done)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(sound);
    const EngineStats stats = listener.loop.stats();
    CHECK_EQ(stats.cells_used, 0);
    CHECK_EQ(stats.running + stats.waiting + stats.held, 0);
    CHECK(stats.audited_rows >= stats.prefilled_tokens);
}

#ifdef __GLIBC__
TEST(without_threads_there_is_no_loop) {
    const NoThreads fault;
    bool refused = false;
    try {
        const Listener listener;
    } catch (const std::system_error& failure) {
        refused = failure.code() == std::errc::resource_unavailable_try_again;
    }
    CHECK(refused);
}
#endif

TEST(close_from_the_middle_of_anything) {
    for (int delay = 0; delay < 20; ++delay) {
        Listener listener;
        for (SequenceId id = 1; id <= 8; ++id) {
            listener.loop.submit(request(id, static_cast<std::uint32_t>(id), 300));
            if (id % 2) listener.loop.pause(id);
        }
        listener.take();
        for (SequenceId id = 1; id <= 8; ++id)
            listener.loop.extend({.id = id, .tokens = words(3, 200)});
        std::this_thread::sleep_for(std::chrono::microseconds(delay * 200));
        listener.loop.close();
    }
}

TEST_MAIN()
