#include "llama/gbnf_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "llama/gbnf_parse.h"

namespace fermata {

namespace gbnf {

namespace {

constexpr std::size_t kMaxBytes = 256 << 10;
constexpr std::uint64_t kMaxWays = 4096;  // stacks that one position may begin

// How many stacks a position begins, and whether it may be empty.
class Ways {
   public:
    explicit Ways(const std::vector<Node>& nodes)
        : nodes_(nodes), nullable_(nodes.size()), ways_(nodes.size()), state_(nodes.size()) {
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                if (nullable_[i]) continue;
                nullable_[i] = std::ranges::any_of(nodes[i].alternatives, [&](const auto& each) {
                    return std::ranges::all_of(each, [&](const Item& item) { return empty(item); });
                });
                changed = changed || nullable_[i];
            }
        }
        for (std::size_t i = 0; i < nodes.size(); ++i)
            visit(i);
        find_first();
        find_cycles();
        for (std::size_t i = 0; i < nodes.size(); ++i)
            check_choices(i);
    }

   private:
    bool empty(const Item& item) const {
        return item.least == 0 || (item.is_node() && nullable_[item.index]);
    }

    // Depth first without recursion: rules may form long chains.
    void visit(std::size_t root) {
        std::vector<std::size_t> stack = {root};
        while (!stack.empty()) {
            const std::size_t node = stack.back();
            if (state_[node] == State::kDone) {
                stack.pop_back();
                continue;
            }
            if (state_[node] == State::kOpen) {
                count(node);
                state_[node] = State::kDone;
                stack.pop_back();
                continue;
            }
            state_[node] = State::kOpen;
            for (const Sequence& sequence : nodes_[node].alternatives) {
                for (const Item& item : sequence) {
                    if (item.is_node() && item.most > 0) {
                        if (state_[item.index] == State::kOpen) {
                            refuse("The rule " + nodes_[item.index].name +
                                   " can begin with itself (left recursion).");
                        }
                        if (state_[item.index] == State::kNew) stack.push_back(item.index);
                    }
                    if (!empty(item)) break;
                }
            }
        }
    }

    void count(std::size_t node) {
        std::uint64_t all = 0;
        for (const Sequence& sequence : nodes_[node].alternatives) {
            std::uint64_t from_here = 1;
            // Any position may be where a stack stands, so each must be within the limit.
            for (auto item = sequence.rbegin(); item != sequence.rend(); ++item) {
                std::uint64_t own = 1;
                if (item->is_node()) {
                    const bool skips = nullable_[item->index];
                    // A rule behind this one in the order has no count yet: it is looked at later.
                    own = std::max<std::uint64_t>(ways_[item->index], 1) *
                          (skips ? std::clamp<std::uint64_t>(item->elements, 1, kMaxWays) : 1);
                }
                from_here = own + (empty(*item) ? from_here : 0);
                if (from_here > kMaxWays) too_many(node);
            }
            all += from_here;
            if (all > kMaxWays) too_many(node);
        }
        ways_[node] = all;
    }
    [[noreturn]] void too_many(std::size_t node) const {
        refuse_size("The rule " + nodes_[node].name + " can begin in too many ways.");
    }

    void find_first() {
        first_.resize(nodes_.size());
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t i = 0; i < nodes_.size(); ++i) {
                Letters letters;
                for (const Sequence& sequence : nodes_[i].alternatives)
                    letters |= first_of(sequence, 0);
                changed = changed || letters != first_[i];
                first_[i] = letters;
            }
        }
    }
    Letters first_of(const Item& item) const {
        return item.is_node() ? first_[item.index] : item.first;
    }
    Letters first_of(const Sequence& sequence, std::size_t from) const {
        Letters letters;
        for (; from < sequence.size(); ++from) {
            letters |= first_of(sequence[from]);
            if (!empty(sequence[from])) break;
        }
        return letters;
    }

    // Which nodes lead back to themselves: those of one cycle get one number above zero. Quadratic
    // at worst, in rules that are few.
    void find_cycles() {
        cycle_.resize(nodes_.size());
        std::vector<std::vector<std::size_t>> backwards(nodes_.size());
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            for_each_node(i, [&](std::size_t to) { backwards[to].push_back(i); });
        }
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (cycle_[i] != 0) continue;
            const auto ahead =
                reach(i, [&](std::size_t at, auto visit) { for_each_node(at, visit); });
            if (!ahead[i]) continue;
            const auto behind = reach(i, [&](std::size_t at, auto visit) {
                for (const std::size_t to : backwards[at])
                    visit(to);
            });
            for (std::size_t k = 0; k < nodes_.size(); ++k) {
                if (ahead[k] && behind[k]) cycle_[k] = i + 1;
            }
        }
    }
    template <class Visit>
    void for_each_node(std::size_t node, Visit visit) const {
        for (const Sequence& sequence : nodes_[node].alternatives) {
            for (const Item& item : sequence) {
                if (item.is_node()) visit(item.index);
            }
        }
    }
    template <class Next>
    std::vector<bool> reach(std::size_t from, Next next) const {
        std::vector<bool> reached(nodes_.size());
        std::vector<std::size_t> todo = {from};
        while (!todo.empty()) {
            const std::size_t at = todo.back();
            todo.pop_back();
            next(at, [&](std::size_t to) {
                if (reached[to]) return;
                reached[to] = true;
                todo.push_back(to);
            });
        }
        return reached;
    }

    // Where text of one kind may enter a recursion in two ways, each level doubles the stacks.
    void check_choices(std::size_t node) const {
        if (cycle_[node] == 0) return;
        Letters entered;
        for (const Sequence& sequence : nodes_[node].alternatives) {
            if (!recurses(sequence, 0, node)) continue;
            const Letters first = first_of(sequence, 0);
            if ((entered & first).any()) too_ambiguous(node);
            entered |= first;
            for (std::size_t i = 0; i < sequence.size(); ++i) {
                const Item& item = sequence[i];
                const bool skips = empty(item) || item.most > item.least;
                if (!skips || !in_cycle(item, node) || !recurses(sequence, i + 1, node)) continue;
                if ((first_of(item) & first_of(sequence, i + 1)).any()) too_ambiguous(node);
            }
        }
    }
    bool in_cycle(const Item& item, std::size_t node) const {
        return item.is_node() && cycle_[item.index] == cycle_[node];
    }
    bool recurses(const Sequence& sequence, std::size_t from, std::size_t node) const {
        for (; from < sequence.size(); ++from) {
            if (in_cycle(sequence[from], node)) return true;
        }
        return false;
    }
    [[noreturn]] void too_ambiguous(std::size_t node) const {
        refuse_size("The rule " + nodes_[node].name +
                    " has alternatives that begin alike and contain it again: the ways to read a "
                    "text would double with each level.");
    }

    enum class State : std::uint8_t { kNew, kOpen, kDone };
    const std::vector<Node>& nodes_;
    std::vector<bool> nullable_;
    std::vector<std::uint64_t> ways_;
    std::vector<State> state_;
    std::vector<Letters> first_;
    std::vector<std::size_t> cycle_;
};

}  // namespace

}  // namespace gbnf

Result<std::vector<std::string>> check_gbnf(std::string_view text) {
    if (text.size() > gbnf::kMaxBytes) {
        return Error{ErrorCode::kGrammarTooLarge,
                     "The grammar has " + std::to_string(text.size()) + " bytes; at most " +
                         std::to_string(gbnf::kMaxBytes) + " are allowed."};
    }
    try {
        gbnf::Parsed parsed = gbnf::parse(text);
        const gbnf::Ways ways(parsed.nodes);
        return std::move(parsed.tokens);
    } catch (const gbnf::Fault& fault) {
        return Error{fault.code, fault.message};
    }
}

}  // namespace fermata
