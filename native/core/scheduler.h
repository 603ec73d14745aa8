// Continuous batching: chooses the rows of the next decode call and handles the sampled tokens.
// Pure: no clock, no thread, no llama.h. One thread calls it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/backend.h"
#include "core/draft_gate.h"
#include "core/draft_model.h"
#include "core/event.h"
#include "core/kv_retention.h"
#include "core/mask_runner.h"
#include "core/prefill_budget.h"
#include "core/request.h"
#include "core/sequence.h"

namespace fermata {

// Bytes that a step moves between slots, RAM and files before it stops admitting, while others
// decode; then it prefills nothing either. A slot is moved in one piece, so the last move may
// exceed the limit.
inline constexpr std::int64_t kMovedInAStep = std::int64_t{64} << 20;

struct SchedulerConfig {
    std::int32_t parallel = 1;             // sequences running at once, >= 1
    std::int32_t step_token_budget = 512;  // most rows per step; decode rows come first
    Milliseconds hold_lease_ms = 600'000;  // a hold fails when it is not resumed in this time
    std::int64_t ram_limit = 0;            // bytes of host memory for cells without a slot
    std::int32_t left_limit = kMaxLeft;    // sequences remembered after they left their slots
    std::int64_t disk_limit = 0;           // bytes of files for what does not fit into RAM
    // Drafted tokens of a sequence in a step; 0: none. Fewer behind several rows. None where the
    // cache cannot be cut back or chunks are fixed.
    std::int32_t draft_limit = 0;
    bool drafts_may_change_bits = true;  // false: none where CacheShape::keeps_bits is false
    // Milliseconds that a step with decode rows should take: bounds its prefill rows; 0: no limit.
    std::int32_t target_itl_ms = 0;
    bool elastic_target = false;  // see PrefillBudget
};

class Scheduler {
   public:
    // All must outlive the scheduler. Without `masks`, masks are made before sampling. Without
    // `files`, nothing goes to disk. `draft_model` is asked for drafts where a sequence's own text
    // has none that is likelier.
    Scheduler(SchedulerConfig config, Backend& backend, MaskRunner* masks = nullptr,
              SequenceFiles* files = nullptr, DraftModel* draft_model = nullptr);

    // Queues a generation. The caller has checked the request (see request.h); a prompt that cannot
    // fit fails by event.
    void submit(SubmitRequest request);
    // Prefills a held sequence with the expected beginning of its resume. It gets only rows and
    // cells that running sequences leave. Ignored when `id` is not held or the tokens do not fit.
    void extend(ExtendRequest request);
    // Queues the continuation of a held sequence, before sequences that were never admitted.
    // Ignored when `id` is not held.
    void resume(ResumeRequest request);
    // Ends a held sequence as released. Ignored when `id` is not held.
    void release(SequenceId id, Milliseconds now);
    // Ends a sequence in any state as cancelled.
    void cancel(SequenceId id, Milliseconds now);
    // A decode call whose sequences will all be cancelled is interrupted, unless it computes the
    // first rows of one. `will_be_cancelled` is asked while decode() runs.
    void interrupt_for(std::function<bool(SequenceId)> will_be_cancelled);
    // Holds a sequence after its next sampled token. Ignored when held or unknown.
    void pause(SequenceId id);
    // The consumer has read `count` generated tokens; reopens the sequence's window.
    void acknowledge(SequenceId id, std::int32_t count);

    // One decode call at most. false: there was nothing to do.
    bool step(Milliseconds now);
    // How long the last step took. Without it drafts are decoded wherever there are any, and no
    // draft model is asked.
    void took(double milliseconds);

    // Call before the last fail_all: writes retained and held sequences to files, as far as time
    // allows.
    void save_all();
    // Ends every sequence as failed and drops all retained sequences.
    void fail_all(FailCode code, const std::string& message);

    // Events and the report of the last steps; moves them out.
    EventBatch take_events();
    EngineStats stats() const;
    // See KvRetention; also checks sequences against slots.
    std::string check_integrity() const;

   private:
    using SequencePtr = std::unique_ptr<Sequence>;
    struct Share;
    struct Wait {
        WaitReason reason;
        SequenceId behind = 0;
    };

    void expire_leases(Milliseconds now);
    void admit(Milliseconds now);
    void save_what_waits();
    // So many waiting prompts are looked up in every step in which a place stays free.
    std::size_t front_of_queue() const { return 2 * static_cast<std::size_t>(shape_.slot_count); }
    void pass(std::size_t from, std::int32_t rows);
    bool yields(Sequence& sequence, const Promise& promise, Milliseconds now);
    bool try_admit(Sequence& sequence, Milliseconds now);
    std::optional<Wait> reason_to_wait(Sequence& sequence, Milliseconds now);
    std::optional<Placement> place(Sequence& sequence, Milliseconds now);
    static SamplingParams sampling_of(Sequence& sequence);
    void give_begun(Sequence& sequence, Milliseconds now);
    void give_known(Sequence& sequence, Milliseconds now);
    void wait(Sequence& sequence, WaitReason reason, SequenceId behind = 0);
    SequenceId sequence_in(SlotId slot) const;
    void set_marks(Sequence& sequence, std::int32_t branch);
    bool awaits_others(Sequence& sequence, std::int32_t have, Milliseconds now);
    void drop_claim(Sequence& sequence);
    bool holds_give(const Sequence& sequence) const;
    bool can_have_slot(const Sequence& sequence) const;
    void plan_batch();
    void plan_together();
    void plan_one();
    std::int32_t most_told_rows() const;
    std::int32_t plan_extensions(std::int32_t prefill_rows);
    bool fit_prefill(std::int32_t decode_rows, std::int32_t prefill_rows,
                     std::int32_t& limit) const;
    void make_room();
    void plan_drafts();
    std::int32_t room_for_drafts() const;
    void ask_draft_model();
    void take_answer(const Share& share, Draft draft);
    std::int32_t most_drafted(const Share& share) const;
    Draft propose(Sequence& sequence, std::int32_t most);
    double worth_of(const Sequence& sequence, const Draft& draft) const;
    std::int32_t join_forced(Sequence& sequence, Draft& draft, std::int32_t most);
    void decode();
    void commit(const Share& share, StepReport& report);
    void fail_all_in_batch(DecodeStatus status);
    DecodeStatus decode_beside_masks();
    void tell_prompt(const Share& share);
    void sample(Milliseconds now);
    void sample(Sequence& sequence, std::size_t row, Milliseconds now);
    std::int32_t confirm_drafted(SequenceId id);
    static double may_cost(const Sequence& sequence);
    void charge_for_drafts();
    void cut_drafted(Sequence& sequence);
    void judge_proposal(SequenceId id);
    Token choose(Sequence& sequence, std::span<const float> logits);
    bool goes_on_blank(const Sequence& sequence, Token sampled) const;
    bool decide(Milliseconds now);
    void settle(Sequence& sequence, Token token, std::span<const float> logits, Milliseconds now);
    void extend(Sequence& sequence, Token sampled, Milliseconds now);
    void give_forced(Sequence& sequence, Milliseconds now);
    bool give_forced(Milliseconds now);

    bool accept(Sequence& sequence, Token token, Milliseconds now);
    bool advance(Sequence& sequence, Token token);
    void complete(Sequence& sequence, Milliseconds now);
    void end_round(Sequence& sequence, Milliseconds now);
    std::int32_t remaining(const Sequence& sequence) const;
    std::string_view text_of(const Sequence& sequence, Token token) const;
    void hold(Sequence& sequence, PauseReason reason, Milliseconds now);
    void finish(Sequence& sequence, FinishReason reason, Milliseconds now);
    void fail(Sequence& sequence, FailCode code, std::string message);
    void preempt(Sequence& sequence);
    bool preempt_held();
    bool preempt_unread();
    void age(Sequence& sequence, Milliseconds now);
    std::int32_t places_taken() const;
    void suspect_all();
    Sequence* suspected_with_rows() const;
    void keep_agreed(Sequence& sequence, const Extension& next, std::int32_t most);
    void give_up_extension(Sequence& sequence, std::int32_t right);
    bool give_up_extensions();
    void commit_extension(Sequence& sequence, std::int32_t count);
    void count_extension(Sequence& sequence);
    void erase(SequenceId id);
    Event& emit(EventKind kind, Sequence& sequence);
    Sequence* find(SequenceId id);
    std::vector<Sequence*> running_with_rows(bool reading) const;
    std::vector<Sequence*> prompts_in_order() const;

    SchedulerConfig config_;
    Backend& backend_;
    MaskRunner* masks_;
    DraftModel* draft_model_;
    CacheShape shape_;
    KvRetention retention_;
    std::unordered_map<SequenceId, SequencePtr> sequences_;
    std::deque<SequenceId> waiting_;      // admission order
    std::vector<SequenceId> running_;     // admission order
    std::vector<SequenceId> extending_;   // held in a slot, with rows to prefill
    std::int32_t decode_only_steps_ = 0;  // before the next prefill
    std::vector<BatchRow> rows_;
    struct Share {  // the rows of one sequence in the batch
        SequenceId id;
        SlotId slot;
        std::int32_t count;
        bool samples;  // its last row is the last of its tokens
        std::size_t last_row;
        std::int32_t drafted = 0;   // rows behind the last one
        std::int32_t by_model = 0;  // of these, the first so many
    };
    std::vector<Share> shares_;
    DraftGate gate_;
    PrefillBudget prefill_budget_;
    std::int32_t prefill_rows_ = 0;           // of the last step
    std::vector<Pass> passes_;                // of the last step, if it had decode rows alone
    std::vector<Pass> passes_without_model_;  // of these, without rows that the draft model said
    std::vector<Pass> passes_alone_;          // of these, without drafted rows
    std::int64_t right_by_model_ = 0;         // of those rows, in the last step
    std::vector<Guide*> guides_;              // whose masks the coming samples need
    EventBatch out_;
    EngineStats totals_;
    bool one_yields_ = false;  // to others, in this step's admissions
    Milliseconds now_ = 0;     // of the current step
};

}  // namespace fermata
