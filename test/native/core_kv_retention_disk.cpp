// What goes to files and comes back from there, with files that are a fake: nothing is written, and
// outcomes come when the test says so.
#include <map>
#include <random>
#include <utility>

#include "watched_cache.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr Milliseconds kLong = 60'000;

// Of a sequence of so many tokens.
std::int64_t file_bytes(std::int64_t tokens) {
    return kFileHeaderBytes + tokens * (4 + kCellBytes);
}

class FakeFiles final : public SequenceFiles {
   public:
    struct File {
        Salt salt = 0;
        std::vector<Token> tokens;
        SavedCells cells;
        std::vector<SavedCells> forks;
    };

    std::vector<FoundFile> take_found() override {
        std::vector<FoundFile> found = std::exchange(found_later, {});
        if (std::exchange(found_all, true)) return found;
        for (const auto& [id, file] : files) {
            FoundFile& one = found.emplace_back();
            one = {.id = id,
                   .salt = file.salt,
                   .tokens = file.tokens,
                   .bytes = file_bytes(static_cast<std::int64_t>(file.tokens.size()))};
            for (const SavedCells& fork : file.forks) {
                one.forks.push_back(fork.length());
                one.bytes += kFileForkBytes + static_cast<std::int64_t>(fork.size());
            }
        }
        return found;
    }
    bool has_room(std::int64_t) const override { return room; }
    bool wait_for_room(std::int64_t) override { return time_left; }
    void write(FileId id, Salt salt, std::vector<Token> tokens, SavedCells cells,
               std::vector<SavedCells> forks) override {
        CHECK(!files.contains(id));
        CHECK(forks.size() <= kMostFiledForks);
        files[id] = {salt, std::move(tokens), std::move(cells), std::move(forks)};
        pending.push_back({.id = id, .event = FileEvent::kWritten});
    }
    void read(FileId id) override {
        CHECK(files.contains(id));
        reads += 1;
        if (!answers) return;
        pending.push_back({.id = id,
                           .event = FileEvent::kRead,
                           .cells = files[id].cells,
                           .forks = files[id].forks});
    }
    void remove(FileId id) override { files.erase(id); }
    std::vector<FileOutcome> take_outcomes() override { return std::exchange(pending, {}); }
    std::int64_t foreign() const override { return 2; }
    std::int64_t damaged_when_found() const override { return 3; }
    std::string fault() const override { return {}; }
    double read_ms(std::int64_t bytes) const override {
        return static_cast<double>(bytes) * ms_per_byte;
    }

    // Another process has written it.
    void appear(FileId id, const std::vector<Token>& tokens, const SavedCells& cells) {
        files[id] = {.salt = 0, .tokens = tokens, .cells = cells, .forks = {}};
        found_later.push_back({.id = id,
                               .tokens = tokens,
                               .bytes = file_bytes(static_cast<std::int64_t>(tokens.size()))});
    }

    // Of what is under way, one comes to nothing.
    void fail_one(std::uint32_t kind) {
        using enum FileEvent;
        if (pending.empty()) return;
        FileOutcome& outcome = pending.back();
        outcome.event = outcome.event == kWritten ? kNotWritten
                        : kind == 0               ? kUnreadable
                                                  : kDamaged;
        outcome.cells = {};
        outcome.forks = {};
        files.erase(outcome.id);
    }

    std::map<FileId, File> files;
    std::vector<FileOutcome> pending;
    bool room = true, time_left = true, answers = true;
    int reads = 0;
    bool found_all = false;  // by this process
    std::vector<FoundFile> found_later;
    double ms_per_byte = 0;
};

struct Cache : WatchedCache {
    FakeFiles& files;

    Cache(CacheShape shape, FakeFiles& used, std::int64_t ram = kPlenty,
          std::int64_t disk = kPlenty)
        : WatchedCache(shape, ram, kMaxLeft, &used, disk), files(used) {
        files.found_all = false;
        attend();
    }

    void attend(Milliseconds later = 1) {
        now += later;
        retention.attend_files(now);
        retention.end_leases(now);
        check();
    }
    // As the scheduler does: it asks until nothing is being read.
    Placement run(const std::vector<Token>& prompt, Salt salt = 0) {
        for (int asked = 0; retention.fetch(prompt, retention.lookup(prompt, salt).promised, salt);
             ++asked) {
            CHECK(asked < 3);
            attend();
        }
        const auto placement = retention.acquire(prompt, ++now, salt);
        CHECK(placement.has_value());
        compute(placement->slot, prompt, placement->reused);
        return *placement;
    }
    // With a fork at each of these lengths.
    void run_marked_and_retain(const std::vector<Token>& prompt,
                               const std::vector<std::int32_t>& marks) {
        SlotId slot = kNoSlot;
        for (const std::int32_t mark : marks) {
            const std::vector<Token> part(prompt.begin(), prompt.begin() + mark);
            if (slot == kNoSlot)
                slot = run(part).slot;
            else
                compute(slot, part, retention.length(slot));
            retention.fork(slot);
        }
        compute(slot, prompt, retention.length(slot));
        retention.retain(slot, ++now, 0);
        attend();
    }
    Placement run_and_retain(const std::vector<Token>& prompt, Salt salt = 0) {
        const Placement placement = run(prompt, salt);
        retention.retain(placement.slot, ++now, 0);
        attend();
        return placement;
    }
};

std::vector<Token> continued(std::uint32_t seed, std::size_t count = 100) {
    return joined(words(seed, count), words(99, 5));
}

}  // namespace

TEST(what_ram_has_no_room_for_comes_back_from_a_file) {
    for (const CacheShape& shape : kShapes) {
        FakeFiles files;
        Cache cache(shape, files, 150 * kCellBytes);
        for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u})
            cache.run_and_retain(words(seed, 100));
        // Two in slots, one in RAM.
        CHECK_EQ(cache.retention.ram().sequences, 1);
        CHECK_EQ(cache.retention.disk().files, 3);
        CHECK_EQ(cache.retention.disk().saves, 3);
        CHECK_EQ(cache.retention.disk().bytes, 3 * file_bytes(100));
        int found = 0;
        for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u})
            found += cache.run(continued(seed)).reused == 100 ? (cache.retention.drop(0), 1) : 0;
        CHECK(found >= 1);
        CHECK(cache.retention.disk().restores >= 1);
    }
}

TEST(what_another_salt_left_gives_nothing_from_slots_ram_files_or_to_the_next_process) {
    for (const CacheShape& shape : kShapes) {
        FakeFiles files;
        Cache cache(shape, files, 150 * kCellBytes);
        for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u})
            cache.run_and_retain(words(seed, 100), 7);
        CHECK_EQ(cache.retention.disk().files, 3);
        for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
            CHECK_EQ(cache.retention.lookup(continued(seed), 8).promised, 0);
            CHECK(!cache.retention.fetch(continued(seed), 0, 8));
        }
        CHECK_EQ(cache.run_and_retain(continued(6), 8).reused, 0);
        CHECK_EQ(cache.run_and_retain(continued(6), 7).reused, 100);
        // In RAM and in files both keep their own.
        for (const std::uint32_t seed : {11u, 12u, 13u, 14u})
            cache.run_and_retain(words(seed, 100));
        CHECK_EQ(cache.run_and_retain(joined(continued(6), words(5, 5)), 9).reused, 0);
        cache.retention.save_all();
        Cache next(shape, files);
        CHECK_EQ(next.run_and_retain(joined(continued(6), words(5, 5)), 6).reused, 0);
        CHECK_EQ(next.run_and_retain(joined(continued(6), words(5, 5)), 8).reused, 105);
        CHECK_EQ(next.run_and_retain(joined(continued(6), words(5, 5)), 7).reused, 105);
    }
}

TEST(without_ram_everything_goes_to_files) {
    FakeFiles files;
    Cache cache(streams(1, 512, 512), files, 0);
    cache.run_and_retain(words(1, 100));
    cache.run_and_retain(words(2, 100));
    CHECK_EQ(cache.retention.disk().files, 1);
    CHECK_EQ(cache.run(continued(1)).reused, 100);
    CHECK_EQ(cache.retention.disk().restores, 1);
    // It stays there until what continues it is written.
    CHECK_EQ(cache.retention.disk().files, 2);
}

TEST(what_rests_is_copied_to_a_file_and_found_by_the_next_process) {
    for (const CacheShape& shape : kShapes) {
        FakeFiles files;
        {
            Cache cache(shape, files);
            cache.run_and_retain(words(1, 100));
            cache.retention.back_up(kPlenty);
            CHECK_EQ(cache.retention.disk().files, 0);  // it may go on at once
            cache.attend(kLong);
            cache.retention.back_up(10);
            CHECK_EQ(cache.retention.disk().files, 0);  // more than may be moved now
            cache.retention.back_up(kPlenty);
            CHECK_EQ(cache.retention.disk().files, 1);
            cache.attend(kLong);
            cache.retention.back_up(kPlenty);
            CHECK_EQ(cache.retention.disk().files, 1);
        }
        Cache next(shape, files);
        CHECK_EQ(next.retention.disk().foreign, 2);
        CHECK_EQ(next.retention.disk().damaged, 3);
        CHECK_EQ(next.run(continued(1)).reused, 100);
        CHECK_EQ(next.retention.disk().restores, 1);
    }
}

TEST(a_file_has_forks_to_which_the_next_process_cuts_back) {
    for (const bool stands_alone : {false, true}) {
        const CacheShape one = streams(2, 512, 512);
        const CacheShape shape = stands_alone ? stand_alone(one) : without_cuts(one);
        FakeFiles files;
        const std::vector<Token> prompt = words(1, 400);
        const auto left_at = [&](std::ptrdiff_t length) {
            return joined({prompt.begin(), prompt.begin() + length}, words(50, 30));
        };
        {
            Cache cache(shape, files);
            cache.run_marked_and_retain(prompt, {80, 150, 200, 250, 300, 350});
            cache.retention.save_all();
        }
        CHECK_EQ(files.files.size(), 1u);
        // The last and the first come before those between: together they are at most as large as
        // the cells twice.
        std::vector<std::int32_t> lengths;
        for (const SavedCells& fork : files.files.begin()->second.forks)
            lengths.push_back(fork.length());
        CHECK(lengths == std::vector<std::int32_t>({350, 80, 300}));
        const auto reused = [&](std::ptrdiff_t length, std::int64_t ram = kPlenty) {
            Cache next(shape, files, ram);
            return next.run(left_at(length)).reused;
        };
        CHECK_EQ(reused(400), 400);
        CHECK_EQ(reused(399), 350);
        CHECK_EQ(reused(349), 300);
        CHECK_EQ(reused(299), 80);
        CHECK_EQ(reused(79), 0);
        // Without memory for a fork it is computed again.
        CHECK_EQ(reused(399, 0), 0);
        CHECK_EQ(reused(399, 10), 0);
    }
}

TEST(what_has_a_fork_where_a_file_ends_takes_its_place) {
    FakeFiles files;
    Cache cache(without_cuts(streams(2, 512, 512)), files);
    cache.run_marked_and_retain(words(1, 100), {90});
    cache.attend(kLong);
    cache.retention.back_up(kPlenty);
    cache.run_marked_and_retain(joined(words(1, 100), words(2, 150)), {100, 120});
    cache.attend(kLong);
    cache.retention.back_up(kPlenty);
    cache.attend();
    CHECK_EQ(cache.retention.disk().files, 1);
    CHECK_EQ(files.files.begin()->second.tokens.size(), 250u);
}

TEST(at_the_end_slots_holds_and_ram_are_written) {
    FakeFiles files;
    {
        Cache cache(streams(2, 512, 512), files);
        for (const std::uint32_t seed : {1u, 2u, 3u})
            cache.run_and_retain(words(seed, 100));
        const SlotId held = cache.run(words(4, 100)).slot;
        cache.retention.hold(held, kLong);
        cache.retention.save_all();
        cache.retention.clear_retained();
        cache.check();
    }
    Cache next(streams(4, 512, 512), files);
    for (const std::uint32_t seed : {1u, 2u, 3u, 4u})
        CHECK_EQ(next.run(continued(seed)).reused, 100);
}

TEST(at_the_end_nothing_is_written_when_the_time_is_over) {
    FakeFiles files;
    Cache cache(streams(2, 512, 512), files);
    cache.run_and_retain(words(1, 100));
    files.time_left = false;
    cache.retention.save_all();
    CHECK_EQ(files.files.size(), 0u);
}

TEST(what_continues_a_file_takes_its_place) {
    FakeFiles files;
    Cache cache(streams(2, 512, 512), files);
    cache.run_and_retain(words(1, 100));
    cache.attend(kLong);
    cache.retention.back_up(kPlenty);
    cache.run_and_retain(continued(1));
    cache.attend(kLong);
    cache.retention.back_up(kPlenty);
    CHECK_EQ(cache.retention.disk().files, 2);  // until the new one is whole
    cache.attend();
    CHECK_EQ(cache.retention.disk().files, 1);
    CHECK_EQ(files.files.size(), 1u);
    CHECK_EQ(files.files.begin()->second.tokens.size(), 105u);
}

TEST(the_limit_of_files_holds) {
    FakeFiles files;
    Cache cache(streams(1, 512, 512), files, 0, 2 * file_bytes(100));
    for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u})
        cache.run_and_retain(words(seed, 100));
    CHECK_EQ(cache.retention.disk().files, 2);
    CHECK_EQ(files.files.size(), 2u);
    CHECK_EQ(cache.retention.disk().full, 2);
    // One that would never fit leaves the others alone.
    cache.run_and_retain(words(6, 400));
    cache.run_and_retain(words(7, 100));
    CHECK_EQ(cache.retention.disk().files, 2);
}

TEST(a_lower_limit_drops_files_at_the_start) {
    FakeFiles files;
    {
        Cache cache(streams(1, 512, 512), files, 0);
        for (const std::uint32_t seed : {1u, 2u, 3u, 4u})
            cache.run_and_retain(words(seed, 100));
        CHECK_EQ(files.files.size(), 3u);
    }
    const Cache next(streams(1, 512, 512), files, 0, file_bytes(100));
    CHECK_EQ(next.retention.disk().files, 1);
    CHECK_EQ(files.files.size(), 1u);
}

TEST(a_queue_that_is_full_costs_the_sequence_only) {
    FakeFiles files;
    Cache cache(streams(1, 512, 512), files, 0);
    files.room = false;
    cache.run_and_retain(words(1, 100));
    cache.run_and_retain(words(2, 100));
    CHECK_EQ(cache.retention.disk().busy, 1);
    CHECK_EQ(cache.run(continued(1)).reused, 0);
}

TEST(files_that_fail_are_counted_and_computed_again) {
    using enum FileEvent;
    for (const FileEvent event : {kNotWritten, kDamaged, kUnreadable}) {
        FakeFiles files;
        Cache cache(streams(1, 512, 512), files, 0);
        cache.run_and_retain(words(1, 100));
        files.answers = false;
        cache.run_and_retain(words(2, 100));
        if (event != kNotWritten) CHECK(cache.retention.fetch(continued(1), 0));
        const FileId id = files.files.begin()->first;
        files.files.clear();
        files.pending = {{.id = id, .event = event}};
        cache.attend();
        CHECK_EQ(cache.retention.disk().files, 0);
        CHECK_EQ(cache.retention.disk().damaged, 3 + (event == kDamaged ? 1 : 0));
        CHECK_EQ(cache.retention.disk().failed, event == kDamaged ? 0 : 1);
        CHECK_EQ(cache.run(continued(1)).reused, 0);
    }
}

TEST(what_cannot_be_restored_is_a_damaged_file) {
    FakeFiles files;
    Cache cache(streams(1, 512, 512), files, 0);
    cache.run_and_retain(words(1, 100));
    cache.run_and_retain(words(2, 100));
    cache.backend.refuse_restores();
    CHECK_EQ(cache.run(continued(1)).reused, 0);
    CHECK_EQ(cache.retention.disk().damaged, 4);
    CHECK(!cache.retention.fetch(continued(1), 0));
}

TEST(a_disk_that_does_not_answer_is_not_waited_for) {
    FakeFiles files;
    Cache cache(streams(1, 512, 512), files, 0);
    cache.run_and_retain(words(1, 100));
    cache.run_and_retain(words(2, 100));
    files.answers = false;
    CHECK(cache.retention.fetch(continued(1), 0));
    cache.attend();
    CHECK(cache.retention.fetch(continued(1), 0));
    CHECK_EQ(files.reads, 1);
    cache.attend(kLong);
    CHECK(!cache.retention.fetch(continued(1), 0));
    CHECK_EQ(cache.run(continued(1)).reused, 0);
}

TEST(a_disk_that_does_not_answer_holds_up_no_third_prompt) {
    FakeFiles files;
    Cache cache(streams(1, 512, 512), files, 0);
    for (const std::uint32_t seed : {1u, 2u, 3u, 4u})
        cache.run_and_retain(words(seed, 100));
    files.answers = false;
    for (const std::uint32_t seed : {1u, 2u, 3u})
        CHECK(cache.retention.fetch(continued(seed), 0));
    CHECK_EQ(files.reads, 2);
    cache.attend(kLong);
    for (const std::uint32_t seed : {1u, 2u, 3u}) {
        CHECK(!cache.retention.fetch(continued(seed), 0));
        CHECK_EQ(cache.run(continued(seed)).reused, 0);
        cache.retention.drop(0);
    }
}

TEST(what_was_read_and_not_taken_leaves_memory) {
    FakeFiles files;
    Cache cache(streams(1, 512, 512), files, 0);
    cache.run_and_retain(words(1, 100));
    cache.run_and_retain(words(2, 100));
    CHECK(cache.retention.fetch(continued(1), 0));
    cache.attend();
    CHECK(!cache.retention.fetch(continued(1), 0));
    CHECK_EQ(cache.retention.lookup(continued(1)).resident, 100);
    cache.attend(kLong);
    CHECK(cache.retention.lookup(continued(1)).resident < 10);
    CHECK(cache.retention.fetch(continued(1), 0));
}

// What a prompt finds is what was computed for exactly its tokens, whatever was evicted, written,
// lost, read or restarted before.
TEST(random_programs_keep_the_cache_sound) {
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](std::uint32_t limit) {
            return static_cast<std::uint32_t>(random() % limit);
        };
        const CacheShape& shape = kShapes.begin()[seed % kShapes.size()];
        const std::int64_t ram = below(2) == 0 ? 0 : below(6) * 100 * kCellBytes;
        const std::int64_t disk = (1 + below(8)) * file_bytes(100);
        FakeFiles files;
        std::vector<std::vector<Token>> known{words(seed, 70)};
        for (int process = 0; process < 3; ++process) {
            Cache cache(shape, files, ram, disk);
            std::vector<SlotId> held;
            for (int step = 0; step < 40; ++step) {
                std::vector<Token> prompt = known[below(static_cast<std::uint32_t>(known.size()))];
                prompt.resize(1 + below(static_cast<std::uint32_t>(prompt.size())));
                if (below(3) > 0) prompt = known.back();
                prompt = joined(std::move(prompt), words(below(9) + 1, 20 + below(60)));
                if (prompt.size() > 400) prompt.resize(400);
                if (held.size() < 2 && cache.retention.lookup(prompt).promised >= 0) {
                    const SlotId slot = cache.run(prompt).slot;
                    if (below(2) == 0) {
                        cache.retention.fork(slot);
                        prompt = joined(std::move(prompt), words(below(9) + 1, 1 + below(30)));
                        cache.compute(slot, prompt, cache.retention.length(slot));
                    }
                    known.push_back(prompt);
                    if (below(5) == 0) {
                        cache.retention.hold(slot, cache.now + kLong);
                        held.push_back(slot);
                    } else if (below(6) == 0) {
                        cache.retention.give_up(slot);
                    } else {
                        cache.now += 1;
                        cache.retention.retain(slot, cache.now, below(2) * (cache.now + 50));
                    }
                }
                if (!held.empty() && (held.size() == 2 || below(3) == 0)) {
                    cache.retention.give_up(held.back());
                    held.pop_back();
                }
                if (below(3) == 0) cache.retention.back_up(kPlenty);
                files.room = below(8) > 0;
                if (below(5) == 0) files.fail_one(below(3));
                cache.attend(below(4) == 0 ? kLong : 1);
                if (cache.retention.disk().bytes > disk) check::fail(__FILE__, __LINE__, "limit");
            }
            files.time_left = below(3) > 0;
            cache.retention.save_all();
            cache.retention.clear_retained();
            cache.check();
            files.pending.clear();
        }
    }
}

TEST(a_scheduler_waits_for_a_file_and_samples_the_same) {
    FakeFiles files;
    const SchedulerConfig config{.parallel = 1, .step_token_budget = 64, .disk_limit = kPlenty};
    World alone(streams(1), config);
    FakeBackend backend(streams(1));
    std::map<SequenceId, std::vector<Token>> sampled;
    std::int32_t cached = 0;
    // Each prompt is another process's.
    for (const SequenceId id : {1u, 2u}) {
        FakeBackend fresh(streams(1));
        files.found_all = false;
        Scheduler scheduler(config, fresh, nullptr, &files);
        const auto prompt = id == 1 ? words(1, 100) : continued(1);
        scheduler.submit({.id = id, .prompt = prompt, .limits = {.max_tokens = 8}});
        for (Milliseconds now = 1; now < 50; ++now) {
            scheduler.step(now);
            CHECK_EQ(scheduler.check_integrity(), "");
            for (const Event& event : scheduler.take_events().events) {
                auto& tokens = sampled[event.id];
                tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
                if (event.kind == EventKind::kFinished) cached = event.usage.cached_tokens;
            }
        }
        scheduler.save_all();
    }
    CHECK_EQ(cached, 100);
    CHECK(sampled[2] == alone.reference(continued(1), 8));
}

TEST(what_another_process_writes_is_found_at_any_time_and_fetched_where_that_is_faster) {
    FakeFiles files;
    Cache other(streams(2, 512, 512), files);
    const SlotId slot = other.run(words(1, 100)).slot;
    const SavedCells cells = other.backend.save(slot);
    FakeFiles shared;
    Cache cache(streams(2, 512, 512), shared);
    cache.run_and_retain(words(2, 100));
    CHECK(!cache.retention.fetch(continued(1), 0));
    shared.appear(kFoundLater, words(1, 100), cells);
    cache.attend();
    CHECK_EQ(cache.retention.disk().files, 1);
    // 100 rows of a millisecond.
    shared.ms_per_byte = 101.0 / static_cast<double>(file_bytes(100));
    CHECK(!cache.retention.fetch(continued(1), 0, 0, 1.0));
    CHECK_EQ(shared.reads, 0);
    shared.ms_per_byte = 99.0 / static_cast<double>(file_bytes(100));
    CHECK(!cache.retention.fetch(continued(1), 2, 0, 1.0));
    CHECK(cache.retention.fetch(continued(1), 0, 0, 1.0));
    CHECK_EQ(shared.reads, 1);
    cache.attend();
    CHECK_EQ(cache.run_and_retain(continued(1)).reused, 100);
    // Its own are numbered by themselves.
    cache.retention.save_all();
    for (const auto& [id, file] : shared.files)
        CHECK(id == kFoundLater || id < 100);
}

TEST(a_file_that_its_place_has_dropped_is_forgotten) {
    FakeFiles files;
    Cache cache(streams(2, 512, 512), files);
    files.appear(kFoundLater, words(1, 100), SavedCells(1600, 100));
    cache.attend();
    files.answers = false;
    CHECK(cache.retention.fetch(continued(1), 0));
    files.pending.push_back({.id = kFoundLater, .event = FileEvent::kGone});
    const auto full = cache.retention.disk().full;
    cache.attend();
    CHECK_EQ(cache.retention.disk().full, full + 1);
    CHECK_EQ(cache.retention.disk().files, 0);
    CHECK(!cache.retention.fetch(continued(1), 0));
}

TEST_MAIN()
