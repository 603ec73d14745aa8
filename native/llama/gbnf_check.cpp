#include "llama/gbnf_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fermata {

namespace {

constexpr std::size_t kMaxBytes = 256 << 10;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxRules = 5000;
constexpr std::uint64_t kMaxRepeats = 2000;  // llama.cpp's own limit
constexpr std::uint64_t kMaxElements = 1 << 20;
constexpr std::uint64_t kMaxWays = 4096;  // stacks that one position may begin

struct Fault {
    ErrorCode code;
    std::string message;
};

[[noreturn]] void refuse(const std::string& message) {
    throw Fault{ErrorCode::kGrammarInvalid, message};
}
[[noreturn]] void refuse_size(const std::string& message) {
    throw Fault{ErrorCode::kGrammarTooLarge, message};
}

struct Item {
    enum class Kind : std::uint8_t { kTerminal, kRule, kGroup } kind = Kind::kTerminal;
    std::size_t index = 0;    // of a rule or a group
    std::uint64_t least = 1;  // repetitions
    std::uint64_t most = 1;
    std::uint64_t elements = 1;
};
using Sequence = std::vector<Item>;
struct Node {  // a rule or a group: its alternatives
    std::vector<Sequence> alternatives;
    std::string name;  // of the rule that it is, or is in
    bool defined = false;
};

class Parser {
   public:
    explicit Parser(std::string_view text) : text_(text) {}

    std::vector<Node> run() {
        skip_blanks(true);
        while (at_ < text_.size())
            parse_rule();
        for (const Node& node : nodes_) {
            if (!node.defined) refuse("Undefined rule: " + node.name);
        }
        if (!rules_.contains("root")) refuse("The grammar has no rule named root.");
        return std::move(nodes_);
    }

   private:
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    [[noreturn]] void expected(const std::string& what) const {
        const auto line =
            1 + std::count(text_.begin(),
                           text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())),
                           '\n');
        refuse("Line " + std::to_string(line) + ": expected " + what + ".");
    }
    void skip_blanks(bool newlines) {
        while (at_ < text_.size()) {
            const char letter = peek();
            if (letter == '#') {
                while (at_ < text_.size() && peek() != '\n' && peek() != '\r')
                    ++at_;
            } else if (letter == ' ' || letter == '\t' ||
                       (newlines && (letter == '\n' || letter == '\r'))) {
                ++at_;
            } else {
                return;
            }
        }
    }
    static bool is_word(char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
               letter == '-' || (letter >= '0' && letter <= '9');
    }
    std::string parse_name() {
        const std::size_t begin = at_;
        while (is_word(peek()))
            ++at_;
        if (at_ == begin) expected("a name");
        return std::string(text_.substr(begin, at_ - begin));
    }
    std::size_t rule_of(const std::string& name) {
        const auto [found, added] = rules_.emplace(name, nodes_.size());
        if (added) add_node(name);
        return found->second;
    }
    std::size_t add_node(const std::string& name) {
        if (nodes_.size() >= kMaxRules) refuse_size("The grammar has too many rules.");
        nodes_.push_back({.alternatives = {}, .name = name});
        return nodes_.size() - 1;
    }
    void parse_rule() {
        const std::string name = parse_name();
        const std::size_t rule = rule_of(name);
        if (nodes_[rule].defined) refuse("The rule " + name + " is defined twice.");
        skip_blanks(false);
        if (text_.substr(std::min(at_, text_.size()), 3) != "::=") expected("::=");
        at_ += 3;
        skip_blanks(true);
        parse_alternatives(rule, name, 0);
        if (at_ < text_.size() && peek() != '\n' && peek() != '\r') expected("a new line");
        skip_blanks(true);
    }
    void parse_alternatives(std::size_t node, const std::string& name, std::size_t depth) {
        if (depth > kMaxDepth) refuse_size("The grammar nests parentheses too deep.");
        std::vector<Sequence> alternatives;
        while (true) {
            alternatives.push_back(parse_sequence(name, depth));
            if (peek() != '|') break;
            ++at_;
            skip_blanks(true);
        }
        nodes_[node].alternatives = std::move(alternatives);
        nodes_[node].defined = true;
    }
    Sequence parse_sequence(const std::string& name, std::size_t depth) {
        Sequence sequence;
        while (true) {
            const char letter = peek();
            if (letter == '"') {
                sequence.push_back(quoted('"'));
            } else if (letter == '[') {
                sequence.push_back(quoted(']'));
            } else if (letter == '.') {
                ++at_;
                sequence.push_back({});
            } else if (letter == '<' || letter == '!') {
                sequence.push_back(token());
            } else if (letter == '(') {
                ++at_;
                skip_blanks(true);
                const std::size_t group = add_node(name);
                parse_alternatives(group, name, depth + 1);
                if (peek() != ')') expected(")");
                ++at_;
                sequence.push_back({.kind = Item::Kind::kGroup, .index = group});
            } else if (is_word(letter)) {
                sequence.push_back({.kind = Item::Kind::kRule, .index = rule_of(parse_name())});
            } else if (letter == '*' || letter == '+' || letter == '?' || letter == '{') {
                if (sequence.empty()) expected("something to repeat");
                repeat(sequence.back());
            } else {
                return sequence;
            }
            skip_blanks(depth > 0);
        }
    }
    Item quoted(char end) {
        std::uint64_t letters = 0;
        for (++at_; peek() != end; ++at_, ++letters) {
            if (at_ >= text_.size() || peek() == '\0') expected(std::string(1, end));
            if (peek() == '\\') escape();
        }
        ++at_;
        // An empty literal is no element at all.
        const bool empty = end == '"' && letters == 0;
        return {.least = empty ? 0u : 1u, .elements = std::max<std::uint64_t>(letters, 1)};
    }
    void escape() {
        ++at_;
        const char kind = peek();
        const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
        for (int i = 0; i < digits; ++i) {
            ++at_;
            const char digit = peek();
            const bool hex = (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f') ||
                             (digit >= 'A' && digit <= 'F');
            if (!hex) expected("a hexadecimal digit");
        }
        const std::string_view simple = "trn\\\"[]-";
        if (digits == 0 && (kind == '\0' || simple.find(kind) == std::string_view::npos))
            expected("a known escape after \\");
    }
    Item token() {
        if (peek() == '!') ++at_;
        const std::size_t close = text_.find('>', at_);
        if (peek() != '<' || close == std::string_view::npos) expected("<token>");
        at_ = close + 1;
        return {};
    }
    std::uint64_t number() {
        std::uint64_t value = 0;
        if (!(peek() >= '0' && peek() <= '9')) expected("a number");
        for (; peek() >= '0' && peek() <= '9'; ++at_) {
            value = value * 10 + static_cast<std::uint64_t>(peek() - '0');
            if (value > kMaxRepeats) refuse_size("At most 2000 repetitions are allowed.");
        }
        skip_blanks(true);
        return value;
    }
    void repeat(Item& item) {
        const char kind = peek();
        ++at_;
        std::uint64_t least = kind == '+' ? 1 : 0;
        std::uint64_t most = kind == '?' ? 1 : kMaxRepeats;
        if (kind == '{') {
            skip_blanks(true);
            least = most = number();
            if (peek() == ',') {
                ++at_;
                skip_blanks(true);
                most = peek() == '}' ? kMaxRepeats : number();
            }
            if (peek() != '}') expected("}");
            ++at_;
            if (most < least) refuse("A repetition has a maximum below its minimum.");
        }
        item.elements *= std::max<std::uint64_t>(
            kind == '{' ? std::max(least, most == kMaxRepeats ? 1 : most) : 1, 1);
        elements_ += item.elements;
        if (elements_ > kMaxElements) refuse_size("The grammar's repetitions are too many.");
        item.most = item.most * most;
        item.least = item.least * least;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::vector<Node> nodes_;
    std::unordered_map<std::string, std::size_t> rules_;
    std::uint64_t elements_ = 0;
};

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
    }

   private:
    bool empty(const Item& item) const {
        return item.least == 0 || (item.kind != Item::Kind::kTerminal && nullable_[item.index]);
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
                    if (item.kind != Item::Kind::kTerminal && item.most > 0) {
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
                if (item->kind != Item::Kind::kTerminal) {
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

    enum class State : std::uint8_t { kNew, kOpen, kDone };
    const std::vector<Node>& nodes_;
    std::vector<bool> nullable_;
    std::vector<std::uint64_t> ways_;
    std::vector<State> state_;
};

}  // namespace

std::optional<Error> gbnf_fault(std::string_view text) {
    if (text.size() > kMaxBytes) {
        return Error{ErrorCode::kGrammarTooLarge, "The grammar has " + std::to_string(text.size()) +
                                                      " bytes; at most " +
                                                      std::to_string(kMaxBytes) + " are allowed."};
    }
    try {
        const std::vector<Node> nodes = Parser(text).run();
        const Ways ways(nodes);
    } catch (const Fault& fault) {
        return Error{fault.code, fault.message};
    }
    return std::nullopt;
}

}  // namespace fermata
