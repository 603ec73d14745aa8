// A scheduler over the fake backend, and what became of every sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "core/scheduler.h"
#include "fake_backend.h"

namespace fermata::testing {

struct Outcome {
    std::vector<Token> sampled;
    std::vector<TokenLogprobs> logprobs;
    std::vector<TokenLogprobs> prompt;  // of the prompt, from its second token on
    std::string text;
    std::vector<EventKind> kinds;  // progress and places left out
    std::vector<Event> places;     // why it waited, and its admissions
    int ready = 0;
    bool held = false, finished = false, failed = false;
    bool pending_token = false;
    std::int32_t extended = 0;  // tokens of the extension that were prefilled
    PauseReason pause = PauseReason::kEndToken;
    FinishReason finish = FinishReason::kEnd;
    FailCode fail = FailCode::kInternal;
    Token stop_token = -1;
    std::string stop_string;
    Usage usage;
};

CacheShape streams(std::int32_t slots, std::int32_t cells = 512, std::int32_t rows = 64);
CacheShape unified(std::int32_t slots, std::int64_t total, std::int32_t cells = 512,
                   std::int32_t rows = 64);

// Tokens that look like text, another sequence of them for each seed.
std::vector<Token> words(std::uint32_t seed, std::size_t count);
std::vector<Token> joined(std::vector<Token> first, const std::vector<Token>& second);

class World {
   public:
    explicit World(CacheShape shape,
                   SchedulerConfig config = {.parallel = 8, .step_token_budget = 64},
                   SequenceFiles* files = nullptr, DraftModel* draft_model = nullptr);
    ~World();

    SequenceId submit(std::vector<Token> prompt, std::int32_t max_tokens = 16);
    SequenceId submit(SubmitRequest request);

    // false: nothing was decoded.
    bool step();
    void run(int limit = 10'000);

    // What a sequence alone on a fresh cache would have sampled.
    std::vector<Token> reference(std::vector<Token> history, std::size_t count) const;

    FakeBackend backend;
    Scheduler scheduler;
    Milliseconds now = 0;
    SequenceId last_id = 0;
    std::map<SequenceId, Outcome> outcomes;
    std::map<SequenceId, std::vector<Token>> prompts;
    std::vector<StepReport> steps;

   private:
    void take();
};

}  // namespace fermata::testing
