#include "fake_backend.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/samplers.h"

namespace fermata::testing {

namespace {

// Of what it sees as likely as the best it chooses by its seed, by how often it chose and by what
// it was told of: each call must come once, in order.
class FakeSampler final : public Sampler {
   public:
    explicit FakeSampler(std::uint32_t seed) : state_(seed * 2654435761u + 1) {}

    Token sample(std::span<const float> logits, TokenMask mask) override {
        std::vector<float> changed(logits.begin(), logits.end());
        const Token best = GreedySampler().sample(logits, mask);
        changed[static_cast<std::size_t>(best)] = -std::numeric_limits<float>::infinity();
        const Token second = GreedySampler().sample(changed, mask);
        turn(1);
        const bool allowed = allows(mask, second) && logits[static_cast<std::size_t>(second)] > 0;
        const Token token = allowed && (state_ >> 20) % 16 == 0 ? second : best;
        turn(token);
        return token;
    }
    void observe(std::span<const Token> tokens) override {
        for (const Token token : tokens)
            turn(token);
    }
    void observe_anew(std::span<const Token> tokens) override {
        turn(static_cast<Token>(tokens.size()));
    }

   private:
    void turn(Token token) {
        state_ = (state_ ^ static_cast<std::uint32_t>(token)) * 1664525u + 1013904223u;
    }
    std::uint32_t state_;
};

std::vector<std::byte> joined_pages(const SavedCells& saved) {
    std::vector<std::byte> bytes;
    for (std::size_t page = 0; page < saved.page_count(); ++page)
        bytes.insert(bytes.end(), saved.page(page).begin(), saved.page(page).end());
    return bytes;
}

}  // namespace

std::vector<Token> tokens_of(std::string_view ascii) {
    return {ascii.begin(), ascii.end()};
}

std::int64_t count_distinct(std::vector<const Cell*> cells) {
    std::ranges::sort(cells);
    return std::ranges::unique(cells).begin() - cells.begin();
}

FakeBackend::FakeBackend(CacheShape shape)
    : shape_(shape), slots_(static_cast<std::size_t>(shape.slot_count)) {
    if (shape_.layout == CacheLayout::kStreams)
        shape_.cells_total = std::int64_t{shape.slot_count} * shape.cells_per_sequence;
    for (Token token = 1; token < 128; ++token)
        pieces_[static_cast<std::size_t>(token)] = static_cast<char>(token);
    pieces_[kCallOpen] = "<tool_call>";
    pieces_[kCallClose] = "</tool_call>";
    for (Token token = kWord; token < kVocabulary; ++token)
        pieces_[static_cast<std::size_t>(token)] =
            std::string(" alpha") + static_cast<char>('a' + (token - kWord) % 26);
}

FakeBackend::~FakeBackend() = default;

std::vector<Token> FakeBackend::content(SlotId slot) const {
    std::vector<Token> tokens;
    for (const auto& cell : at(slot))
        tokens.push_back(cell->token);
    return tokens;
}

std::vector<const Cell*> FakeBackend::cells(SlotId slot) const {
    std::vector<const Cell*> cells;
    for (const auto& cell : at(slot))
        cells.push_back(cell.get());
    return cells;
}

std::int64_t FakeBackend::cells_in_use() const {
    std::vector<const Cell*> all;
    for (const auto& slot : slots_)
        for (const auto& cell : slot)
            all.push_back(cell.get());
    return count_distinct(std::move(all));
}

Token FakeBackend::next_token(std::span<const Token> history) const {
    const std::int32_t chunk = std::max(shape_.fixed_chunk, 1);
    const std::int32_t whole = (static_cast<std::int32_t>(history.size()) - 1) / chunk * chunk;
    std::uint64_t hash = 0;
    for (std::int32_t position = 0; const Token token : history) {
        hash = mix(hash, position, token) +
               static_cast<std::uint64_t>(position < whole ? felt(chunk, position % chunk)
                                                           : felt(1, 0));
        ++position;
    }
    return GreedySampler().sample(logits_of(hash, history));
}

DecodeStatus FakeBackend::decode(std::span<const BatchRow> rows) {
    require(!rows.empty() && rows.size() <= static_cast<std::size_t>(shape_.max_rows),
            "decode: row count");
    const auto told = statuses_.find(decode_calls_++);
    const DecodeStatus status = told == statuses_.end() ? DecodeStatus::kOk : told->second;
    if (status == DecodeStatus::kNoCells) return status;
    if (is_unwanted_ && is_unwanted_()) return DecodeStatus::kInterrupted;
    const bool unified = shape_.layout == CacheLayout::kUnified;
    if (unified && cells_in_use() + static_cast<std::int64_t>(rows.size()) > shape_.cells_total)
        return DecodeStatus::kNoCells;
    logits_.assign(rows.size(), {});
    undoable_.clear();
    const auto wanted = std::ranges::count_if(rows, &BatchRow::wants_logits);
    require(shape_.max_logit_rows == 0 || wanted <= shape_.max_logit_rows, "decode: logits");
    SlotId last = kNoSlot;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const BatchRow& row = rows[i];
        auto& slot = checked(row.slot);
        require(row.slot >= last, "decode: slots do not ascend");
        last = row.slot;
        require(row.position == static_cast<std::int32_t>(slot.size()), "decode: position");
        require(row.position < shape_.cells_per_sequence, "decode: sequence too long");
        require(row.token >= 0 && row.token < kVocabulary, "decode: token");
        const std::int64_t shape =
            felt(static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(i));
        slot.push_back(std::make_shared<Cell>(Cell{row.token, row.position, shape}));
        if (row.wants_logits) logits_[i] = logits_of(hash_of(slot), content(row.slot));
        const bool first = i == 0 || rows[i - 1].slot != row.slot;
        if (!first && undoable_[row.slot] < shape_.undo_rows) ++undoable_[row.slot];
    }
    if (status == DecodeStatus::kFailed) {
        logits_.clear();
        for (const BatchRow& row : rows)  // whatever was written is not to be trusted
            if (!at(row.slot).empty()) at(row.slot).back() = std::make_shared<Cell>();
        return status;
    }
    rows_ += static_cast<std::int64_t>(rows.size());
    return status;
}

std::span<const float> FakeBackend::logits(std::size_t row) {
    require(row < logits_.size() && !logits_[row].empty(), "logits: not asked for");
    if (broken_) logits_[row].assign(*broken_, std::numeric_limits<float>::quiet_NaN());
    return logits_[row];
}

bool FakeBackend::copy_prefix(SlotId from, SlotId to, std::int32_t length) {
    const auto& source = checked(from);
    auto& target = checked(to);
    require(from != to && target.empty(), "copy: target is not empty");
    require(length > 0 && length <= static_cast<std::int32_t>(source.size()), "copy: length");
    require(shape_.partial_truncate || length == static_cast<std::int32_t>(source.size()),
            "copy: partial");
    target.assign(source.begin(), source.begin() + length);
    if (shape_.layout == CacheLayout::kUnified) return true;
    for (auto& cell : target)
        cell = std::make_shared<Cell>(*cell);
    return true;
}

bool FakeBackend::truncate(SlotId slot, std::int32_t length) {
    auto& cells = checked(slot);
    require(length >= 0 && length <= static_cast<std::int32_t>(cells.size()), "truncate: length");
    const bool whole = length == 0 || length == static_cast<std::int32_t>(cells.size());
    const bool undoes = length >= static_cast<std::int32_t>(cells.size()) - undoable_[slot];
    if (!shape_.partial_truncate && !whole && !undoes) return false;
    undoable_[slot] = 0;
    cells.resize(static_cast<std::size_t>(length));
    return true;
}

std::size_t FakeBackend::fork_size(SlotId slot) {
    return shape_.partial_truncate ? 0 : saved_size(slot);
}

SavedCells FakeBackend::fork(SlotId slot) {
    require(fork_size(slot) > 0, "fork: nothing to fork");
    return save(slot);
}

bool FakeBackend::cut_back(SlotId slot, const SavedCells& fork) {
    auto& cells = checked(slot);
    const auto length = static_cast<std::size_t>(fork.length());
    require(!shape_.partial_truncate, "cut back: it can be truncated");
    require(fork.size() == length * sizeof(Cell), "cut back: size");
    if (!restores_) {
        cells.clear();
        return false;
    }
    if (shape_.forks_stand_alone) cells.clear();
    const std::vector<std::byte> bytes = joined_pages(fork);
    for (std::size_t i = 0; i < length; ++i) {
        Cell cell;
        std::memcpy(&cell, bytes.data() + i * sizeof(Cell), sizeof(Cell));
        if (shape_.forks_stand_alone) {
            cells.push_back(std::make_shared<Cell>(cell));
            continue;
        }
        require(i < cells.size() && cells[i]->token == cell.token, "cut back: other tokens");
    }
    cells.resize(length);
    undoable_[slot] = 0;
    return true;
}

std::size_t FakeBackend::saved_size(SlotId slot) {
    ++sizes_asked;
    return saves_ ? checked(slot).size() * sizeof(Cell) : 0;
}

SavedCells FakeBackend::save_beside(SlotId slot, const SavedCells& like, std::int32_t common) {
    const auto& cells = checked(slot);
    require(saved_size(slot) > 0, "save: nothing to save");
    SavedCells saved({.position = sizeof(Cell), .length = static_cast<std::int32_t>(cells.size())},
                     like, common);
    for (std::size_t at = 0; at < cells.size(); ++at) {
        const std::size_t page = 1 + at / kPagePositions;
        const std::size_t place = at % kPagePositions * sizeof(Cell);
        std::byte* to = saved.page(page).data() + place;
        if (saved.is_shared(page)) {
            if (std::memcmp(to, cells[at].get(), sizeof(Cell)) == 0) continue;
            saved.make_own(page, place);
            to = saved.page(page).data() + place;
        }
        std::memcpy(to, cells[at].get(), sizeof(Cell));
    }
    return saved;
}

bool FakeBackend::restore(SlotId slot, const SavedCells& saved) {
    auto& cells = checked(slot);
    require(cells.empty(), "restore: slot is not empty");
    require(saved.size() == static_cast<std::size_t>(saved.length()) * sizeof(Cell),
            "restore: size");
    if (!restores_) return false;
    const bool unified = shape_.layout == CacheLayout::kUnified;
    require(!unified || cells_in_use() + saved.length() <= shape_.cells_total, "restore: no cells");
    const std::vector<std::byte> bytes = joined_pages(saved);
    for (std::size_t at = 0; at < saved.size(); at += sizeof(Cell)) {
        Cell cell;
        std::memcpy(&cell, bytes.data() + at, sizeof(Cell));
        cells.push_back(std::make_shared<Cell>(cell));
    }
    return true;
}

std::unique_ptr<Sampler> FakeBackend::make_sampler(const SamplingParams& params) {
    samplers_made += 1;
    if (params.script) {
        SamplingParams after = params;
        after.script.reset();
        return std::make_unique<ScriptedSampler>(
            *params.script, kEnd, params.samples_after_script ? make_sampler(after) : nullptr);
    }
    if (params.temperature > 0.0f) return std::make_unique<FakeSampler>(params.seed);
    return std::make_unique<GreedySampler>();
}

std::string_view FakeBackend::piece(Token token) const {
    require(token >= 0 && token < kVocabulary, "piece: token");
    return pieces_[static_cast<std::size_t>(token)];
}

std::string FakeBackend::spelled_piece(Token token) const {
    const std::string_view text = piece(token);
    return text.empty() ? "<|" + std::to_string(token) + "|>" : std::string(text);
}

void FakeBackend::require(bool holds, const char* rule) {
    if (!holds) throw std::logic_error(std::string("FakeBackend: ") + rule);
}

std::uint64_t FakeBackend::mix(std::uint64_t hash, std::int32_t position, Token token) {
    hash ^= (static_cast<std::uint64_t>(position) << 32) + static_cast<std::uint64_t>(token) + 1;
    hash *= 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

std::int64_t FakeBackend::felt(std::int64_t rows, std::int64_t row) const {
    return feels_shapes_ ? rows * 1000 + row : 0;
}

std::uint64_t FakeBackend::hash_of(const SlotCells& cells) {
    std::uint64_t hash = 0;
    for (const auto& cell : cells)
        hash = mix(hash, cell->position, cell->token) + static_cast<std::uint64_t>(cell->shape);
    return hash;
}

std::vector<float> FakeBackend::logits_of(std::uint64_t hash,
                                          std::span<const Token> history) const {
    std::vector<float> logits(static_cast<std::size_t>(kVocabulary), -10.0f);
    for (Token token = 1; token < kVocabulary; ++token) {
        const bool letter = (token >= 'a' && token <= 'z') || token == ' ' || token >= kWord;
        if (!letter) continue;
        logits[static_cast<std::size_t>(token)] = static_cast<float>(mix(hash, 0, token) >> 40);
    }
    if (end_period_ > 0 && mix(hash, 1, kEnd) % end_period_ == 0)
        logits[static_cast<std::size_t>(kEnd)] = std::numeric_limits<float>::max();
    if (mix(hash, 2, kEnd) % 100 >= copies_) return logits;
    for (std::size_t i = history.size() - 1; i > 1; --i) {
        if (history[i - 1] != history.back() || history[i - 2] != history[history.size() - 2])
            continue;
        logits[static_cast<std::size_t>(history[i])] += 1e9f;
        break;
    }
    return logits;
}

FakeBackend::SlotCells& FakeBackend::checked(SlotId slot) {
    require(slot >= 0 && slot < shape_.slot_count, "slot");
    return at(slot);
}

}  // namespace fermata::testing
