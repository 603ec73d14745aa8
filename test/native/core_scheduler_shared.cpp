// Servers that share files: what the prompts of all begin with is computed by one of them, and no
// prompt waits without end for that.
#include <map>
#include <set>
#include <utility>

#include "check.h"
#include "core/sequence_files.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

// What the servers share.
struct Place {
    struct File {
        const void* writer = nullptr;
        FoundFile head;
        SavedCells cells;
    };
    std::vector<File> files;
    std::map<std::uint64_t, const void*> claims;  // and who has them
    bool reachable = true, answers = true, has_room = true;
    int writes = 0, asked = 0;
};

class SharedFiles final : public SequenceFiles {
   public:
    explicit SharedFiles(Place& place) : place_(place) {}

    Claim claim(std::uint64_t what) override {
        if (!place_.reachable) return Claim::kNobody;
        if (asked_.insert(what).second) ++place_.asked;
        const auto claim = place_.claims.find(what);
        if (claim == place_.claims.end()) return Claim::kAsked;
        return claim->second == this ? Claim::kOurs : Claim::kOthers;
    }
    void give_back(std::uint64_t what) override {
        const auto claim = place_.claims.find(what);
        if (claim != place_.claims.end() && claim->second == this) place_.claims.erase(claim);
        asked_.erase(what);
    }
    std::vector<FoundFile> take_found() override {
        // Until it is given back, whether anybody waits for it or not.
        for (const std::uint64_t what : asked_)
            if (place_.answers) place_.claims.try_emplace(what, this);
        std::vector<FoundFile> found;
        for (; known_ < place_.files.size(); ++known_) {
            const Place::File& file = place_.files[known_];
            if (file.writer == this) continue;
            found.push_back(file.head);
            found.back().id = kFoundLater + known_;
        }
        return found;
    }
    bool has_room(std::int64_t) const override { return place_.has_room; }
    bool wait_for_room(std::int64_t) override { return false; }
    void write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
               std::vector<SavedCells>) override {
        const auto bytes = static_cast<std::int64_t>(cells.size());
        FoundFile head{.salt = salt, .tokens = std::move(tokens), .bytes = bytes};
        place_.files.push_back({this, std::move(head), std::move(cells)});
        ++place_.writes;
        outcomes_.push_back({.id = id, .event = FileEvent::kWritten});
    }
    void read(FileId id) override {
        const SavedCells& cells = place_.files[static_cast<std::size_t>(id - kFoundLater)].cells;
        outcomes_.push_back({.id = id, .event = FileEvent::kRead, .cells = cells});
    }
    void remove(FileId) override {}
    std::vector<FileOutcome> take_outcomes() override { return std::exchange(outcomes_, {}); }
    std::int64_t foreign() const override { return 0; }
    std::int64_t damaged_when_found() const override { return 0; }
    std::string fault() const override { return {}; }

   private:
    Place& place_;
    std::set<std::uint64_t> asked_;
    std::size_t known_ = 0;
    std::vector<FileOutcome> outcomes_;
};

constexpr std::int32_t kShared = 300;

struct Server {
    SharedFiles files;
    World world;

    explicit Server(Place& place, std::int32_t rows = 64)
        : files(place),
          world(streams(4, 512, rows),
                {.parallel = 4, .step_token_budget = rows, .disk_limit = 1 << 30}, &files) {}
    SequenceId ask(const std::vector<Token>& prompt, std::int32_t shared = kShared, Salt salt = 0) {
        return world.submit(
            {.prompt = prompt, .limits = {.max_tokens = 8}, .shared = shared, .salt = salt});
    }
    std::int64_t prefilled() const { return world.scheduler.stats().prefilled_tokens; }
    void step(int count) {
        for (int i = 0; i < count; ++i)
            world.step();
    }
    // Right, whoever has computed its beginning.
    void check(SequenceId id) {
        const Outcome& outcome = world.outcomes[id];
        CHECK(outcome.finished);
        CHECK(outcome.sampled == world.reference(world.prompts[id], outcome.sampled.size()));
    }
};

const std::vector<Token> beginning = words(1, kShared);

std::vector<Token> prompt_of(std::uint32_t user) {
    return joined(beginning, words(user, 20));
}

}  // namespace

TEST(one_of_two_servers_computes_what_both_need) {
    Place place;
    Server one(place), two(place);
    const SequenceId first = one.ask(prompt_of(2)), second = two.ask(prompt_of(3));
    const SequenceId third = two.ask(prompt_of(4));
    for (int i = 0; i < 60; ++i) {
        one.step(1);
        two.step(1);
    }
    one.check(first);
    two.check(second);
    two.check(third);
    CHECK_EQ(one.prefilled() + two.prefilled(), kShared + 3 * 20);
    CHECK(place.claims.empty());
    CHECK_EQ(place.files.front().head.tokens.size(), beginning.size());
}

TEST(what_one_has_computed_before_is_there_for_the_other) {
    Place place;
    Server one(place);
    one.check([&] {
        const SequenceId id = one.ask(prompt_of(2));
        one.step(30);
        return id;
    }());
    Server two(place);
    const SequenceId second = two.ask(prompt_of(3));
    two.step(30);
    two.check(second);
    CHECK_EQ(two.prefilled(), 20);
}

TEST(another_owners_beginning_is_nobodys_business) {
    Place place;
    Server one(place), two(place);
    one.ask(prompt_of(2), kShared, 1);
    one.step(3);
    const SequenceId second = two.ask(prompt_of(3), kShared, 2);
    two.step(30);
    two.check(second);
    CHECK_EQ(two.prefilled(), kShared + 20);
}

TEST(a_claim_that_two_prompts_asked_for_stays_with_the_one_that_computes) {
    Place place;
    Server one(place), two(place);
    one.ask(prompt_of(2));
    one.ask(prompt_of(3));
    while (one.prefilled() == 0)
        one.step(1);
    one.step(2);
    CHECK_EQ(place.claims.size(), 1u);
    two.ask(prompt_of(4));
    two.step(10);
    CHECK_EQ(two.prefilled(), 0);
}

TEST(a_server_that_dies_is_not_waited_for) {
    Place place;
    Server one(place), two(place);
    one.ask(prompt_of(2));
    one.step(3);
    const SequenceId second = two.ask(prompt_of(3));
    two.step(10);
    CHECK_EQ(two.prefilled(), 0);
    CHECK(two.world.outcomes[second].places.back().wait == WaitReason::kFile);
    place.claims.clear();  // it has expired
    two.step(30);
    two.check(second);
    CHECK_EQ(two.prefilled(), kShared + 20);
    CHECK(place.claims.empty());
    CHECK_EQ(place.writes, 1);
}

TEST(a_server_that_does_nothing_is_waited_for_so_long) {
    Place place;
    Server one(place), two(place);
    one.ask(prompt_of(2));
    one.step(3);
    const SequenceId second = two.ask(prompt_of(3));
    two.step(10);
    two.world.now += 29'000;
    two.step(10);
    CHECK_EQ(two.prefilled(), 0);
    two.world.now += 2'000;
    two.step(30);
    two.check(second);
}

TEST(what_ends_before_it_has_shared_gives_its_claim_back) {
    Place place;
    Server one(place), two(place);
    const SequenceId first = one.ask(prompt_of(2));
    one.step(3);
    const SequenceId second = two.ask(prompt_of(3));
    two.step(3);
    CHECK_EQ(place.claims.size(), 1u);
    one.world.scheduler.cancel(first, 0);
    CHECK(place.claims.empty());
    two.step(30);
    two.check(second);
}

TEST(where_nobody_can_be_asked_or_nothing_written_all_is_computed) {
    Place place;
    Server one(place), two(place);
    place.reachable = false;
    const SequenceId first = one.ask(prompt_of(2)), second = two.ask(prompt_of(3));
    one.step(30);
    two.step(30);
    one.check(first);
    two.check(second);
    CHECK_EQ(one.prefilled() + two.prefilled(), 2 * (kShared + 20));
    place.reachable = true;
    place.has_room = false;
    const std::vector<Token> other = words(9, kShared + 20);
    const SequenceId third = one.ask(other);
    one.step(30);
    one.check(third);
    CHECK(place.claims.empty());
    CHECK_EQ(place.writes, 0);
}

TEST(a_claim_is_given_back_when_another_prompt_has_computed_what_it_is_for) {
    Place place;
    Server one(place, 512);
    const SequenceId first = one.ask(prompt_of(2)), second = one.ask(prompt_of(3), 0);
    one.step(1);
    CHECK_EQ(place.asked, 1);
    CHECK_EQ(one.prefilled(), kShared + 20);
    one.step(30);
    one.check(first);
    one.check(second);
    CHECK_EQ(one.prefilled(), kShared + 2 * 20);
    CHECK(place.claims.empty());
}

TEST(an_answer_is_waited_for_a_moment) {
    Place place;
    place.answers = false;
    Server one(place);
    const SequenceId first = one.ask(prompt_of(2));
    one.step(3);
    one.world.now += 299;
    one.step(3);
    CHECK_EQ(one.prefilled(), 0);
    one.world.now += 1;
    one.step(30);
    one.check(first);
    // Others may have been answered meanwhile, and wait for it.
    CHECK_EQ(place.writes, 1);
    place.answers = true;
    one.step(3);
    CHECK(place.claims.empty());
}

TEST(who_asks_anew_waits_anew_for_the_answer) {
    Place place;
    place.answers = false;
    Server one(place);
    const SequenceId first = one.ask(prompt_of(2));
    one.step(1);
    // The first one waits behind it meanwhile, and asks nobody.
    const SequenceId other = one.world.submit({.prompt = prompt_of(3), .retain = false});
    one.step(2);
    CHECK(one.world.outcomes[first].places.back().wait == WaitReason::kPrefix);
    one.world.now += 400;
    one.world.scheduler.cancel(other, one.world.now);
    const std::int64_t before = one.prefilled();
    one.step(2);
    CHECK_EQ(one.prefilled(), before);
    place.answers = true;
    one.step(30);
    one.check(first);
    CHECK(place.claims.empty());
}

TEST(what_is_computed_soon_is_not_waited_for_long) {
    for (const auto& [row_ms, patience] : {std::pair{1, 2'200}, std::pair{1'000, 10'000}}) {
        Place place;
        Server one(place), two(place);
        two.ask(words(9, 64), 0);
        two.step(1);
        two.world.scheduler.took(64.0 * row_ms);
        two.step(20);
        const std::int64_t before = two.prefilled();
        one.ask(prompt_of(2));
        one.step(3);
        const SequenceId second = two.ask(prompt_of(3));
        two.step(3);
        two.world.now += patience - 1;
        two.step(3);
        CHECK_EQ(two.prefilled(), before);
        two.world.now += 1;
        two.step(30);
        two.check(second);
    }
}

TEST(nothing_is_claimed_before_there_is_a_slot) {
    Place place;
    Server one(place);
    std::vector<SequenceId> held;
    for (std::uint32_t user = 2; user < 5; ++user) {
        held.push_back(one.ask(words(user, 20), 0));
        one.world.scheduler.pause(held.back());
    }
    one.step(5);
    one.world.submit(words(5, 20), 200);
    one.step(5);
    const SequenceId waits = one.ask(prompt_of(6));
    one.step(20);
    CHECK(one.world.outcomes[waits].places.back().wait == WaitReason::kSlot);
    CHECK_EQ(place.asked, 0);
    one.world.scheduler.cancel(held.front(), 0);
    one.step(30);
    one.check(waits);
    CHECK_EQ(place.asked, 1);
    CHECK(place.claims.empty());
}

TEST(a_step_shares_no_more_when_it_has_moved_much) {
    struct HeavyBackend : FakeBackend {
        using FakeBackend::FakeBackend;
        std::size_t saved_size(SlotId) override { return kMovedInAStep; }
        SavedCells save(SlotId slot) override {
            return {kMovedInAStep, static_cast<std::int32_t>(content(slot).size())};
        }
    };
    Place place;
    SharedFiles files(place);
    HeavyBackend backend(streams(4, 512, 300));
    Scheduler scheduler({.parallel = 4, .step_token_budget = 300, .disk_limit = 1 << 30}, backend,
                        nullptr, &files);
    // Both have computed in the same step what they share: the shorter prompt is read first.
    constexpr std::uint32_t kOwn[] = {20, 120};
    for (const auto& [id, shared] : {std::pair{1, 340}, std::pair{2, 260}})
        scheduler.submit({.id = static_cast<SequenceId>(id),
                          .prompt = words(static_cast<std::uint32_t>(id), shared + kOwn[id - 1]),
                          .limits = {.max_tokens = 8},
                          .shared = shared});
    const auto step = [&] {
        scheduler.step(0);
        return scheduler.take_events().steps;
    };
    while (scheduler.stats().prefilled_tokens < 340 + 260)
        step();
    CHECK_EQ(place.writes, 0);
    CHECK_EQ(step().back().prefill_rows, 20);
    CHECK_EQ(place.writes, 1);
    step();
    CHECK_EQ(place.writes, 2);
    for (int i = 0; i < 30; ++i)
        step();
    CHECK_EQ(scheduler.stats().prefilled_tokens, 340 + 260 + 20 + 120);
    CHECK(place.claims.empty());
    CHECK(place.files[0].head.tokens == words(1, 340));
    CHECK(place.files[1].head.tokens == words(2, 260));
}

TEST(a_short_beginning_is_computed_at_once) {
    Place place;
    Server one(place);
    const SequenceId first = one.ask(words(2, 220), 200);
    one.step(30);
    one.check(first);
    CHECK_EQ(place.writes, 0);
}

TEST_MAIN()
