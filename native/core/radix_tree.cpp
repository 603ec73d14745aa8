#include "core/radix_tree.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace fermata {
namespace {

std::size_t common_length(std::span<const Token> a, std::span<const Token> b) {
    const auto [end, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

RadixTree::Node* RadixTree::Node::child(Token first) const {
    for (const Child& entry : children)
        if (entry.first == first) return entry.node.get();
    return nullptr;
}

RadixTree::RadixTree(std::int32_t slot_count)
    : paths_(static_cast<std::size_t>(slot_count)),
      salts_(paths_.size()),
      tails_(paths_.size(), &root_) {
    for (SlotId slot = 0; slot < slot_count; ++slot)
        root_.slots.add(slot);
}

std::span<const Token> RadixTree::path(SlotId slot) const {
    return paths_[static_cast<std::size_t>(slot)];
}

Salt RadixTree::salt(SlotId slot) const {
    return salts_[static_cast<std::size_t>(slot)];
}

void RadixTree::set_salt(SlotId slot, Salt salt) {
    assert(path(slot).empty() || this->salt(slot) == salt);
    salts_[static_cast<std::size_t>(slot)] = salt;
}

void RadixTree::share(SlotId from, SlotId to, std::int32_t length) {
    set_salt(to, salt(from));
    extend(to, path(from).first(static_cast<std::size_t>(length)));
}

std::span<const Token> RadixTree::run(const Node& node) const {
    return path(node.slots.first()).subspan(node.begin, node.end - node.begin);
}

RadixTree::Node* RadixTree::add_child(Node* parent, Token first, std::size_t begin,
                                      std::size_t end) {
    auto node = std::make_unique<Node>();
    node->parent = parent;
    node->begin = begin;
    node->end = end;
    parent->children.push_back({first, std::move(node)});
    return parent->children.back().node.get();
}

void RadixTree::remove_child(Node* child) {
    std::erase_if(child->parent->children,
                  [child](const Child& entry) { return entry.node.get() == child; });
}

// The node keeps [begin, at); a new only child takes the rest, the children and the tails.
void RadixTree::split(Node* node, std::size_t at) {
    const Token first = run(*node)[at - node->begin];
    std::vector<Child> children = std::exchange(node->children, {});
    Node* lower = add_child(node, first, at, node->end);
    lower->slots = node->slots;
    lower->children = std::move(children);
    for (Child& entry : lower->children)
        entry.node->parent = lower;
    node->end = at;
    lower->slots.for_each([&](SlotId slot) {
        if (tail_of(slot) == node) tail_of(slot) = lower;
    });
}

// Undoes a split that no path needs any more.
void RadixTree::join_only_child(Node* node) {
    if (node == &root_ || node->children.size() != 1) return;
    if (node->children.front().node->slots != node->slots) return;
    const std::unique_ptr<Node> child = std::move(node->children.front().node);
    node->end = child->end;
    node->children = std::move(child->children);
    for (Child& entry : node->children)
        entry.node->parent = node;
    node->slots.for_each([&](SlotId slot) {
        if (tail_of(slot) == child.get()) tail_of(slot) = node;
    });
}

void RadixTree::extend(SlotId slot, std::span<const Token> tokens) {
    if (tokens.empty()) return;
    std::vector<Token>& path = path_of(slot);
    std::size_t at = path.size();
    path.insert(path.end(), tokens.begin(), tokens.end());

    Node* const start = tail_of(slot);
    if (start != &root_ && start->slots.is_only(slot)) {
        start->end = path.size();
        return;
    }
    Node* node = start;
    while (at < path.size()) {
        Node* next = node->child(path[at]);
        if (next == nullptr) {
            next = add_child(node, path[at], at, path.size());
            at = path.size();
        } else {
            const std::size_t common = common_length(run(*next), std::span(path).subspan(at));
            at += common;
            if (at < next->end) split(next, at);
        }
        next->slots.add(slot);
        node = next;
    }
    tail_of(slot) = node;
    join_only_child(start);
}

void RadixTree::truncate(SlotId slot, std::int32_t length) {
    const auto keep = static_cast<std::size_t>(length);
    Node* node = tail_of(slot);
    while (node != &root_ && node->begin >= keep) {
        Node* const parent = node->parent;
        node->slots.remove(slot);
        if (node->slots.empty()) {
            remove_child(node);
        } else {
            join_only_child(node);
        }
        node = parent;
    }
    if (node->end > keep) {
        if (node->slots.is_only(slot)) {
            node->end = keep;
        } else {
            split(node, keep);
            node->children.front().node->slots.remove(slot);
            join_only_child(node->children.front().node.get());
        }
    }
    tail_of(slot) = node;
    path_of(slot).resize(keep);
}

void RadixTree::match(std::span<const Token> prompt, Salt salt,
                      std::span<std::int32_t> shared) const {
    const Node* node = &root_;
    std::size_t depth = 0;
    const auto part_here = [&](const SlotSet& slots) {
        slots.for_each([&](SlotId slot) {
            const bool own = this->salt(slot) == salt;
            shared[static_cast<std::size_t>(slot)] = own ? static_cast<std::int32_t>(depth) : 0;
        });
    };
    while (depth == node->end && depth < prompt.size()) {
        const Node* next = node->child(prompt[depth]);
        if (next == nullptr) break;
        part_here(node->slots.without(next->slots));
        depth += common_length(run(*next), prompt.subspan(depth));
        node = next;
    }
    part_here(node->slots);
}

std::int32_t RadixTree::shared_with(SlotId slot, const SlotSet& others) const {
    const SlotSet rest = others.without(SlotSet{}.with(slot));
    const Node* node = tails_[static_cast<std::size_t>(slot)];
    while (node != &root_ && node->slots.without(rest) == node->slots)
        node = node->parent;
    return static_cast<std::int32_t>(node->end);
}

std::int32_t RadixTree::node_count() const {
    std::int32_t count = 0;
    std::vector<const Node*> open{&root_};
    while (!open.empty()) {
        const Node* node = open.back();
        open.pop_back();
        ++count;
        for (const Child& entry : node->children)
            open.push_back(entry.node.get());
    }
    return count - 1;  // the root holds no run
}

std::string RadixTree::check_node(const Node& node) const {
    const auto at = " at depth " + std::to_string(node.end);
    SlotSet below;
    std::string wrong;
    for (const Child& entry : node.children) {
        const Node& child = *entry.node;
        if (child.parent != &node) return "tree: wrong parent" + at;
        if (child.begin != node.end || child.end <= child.begin) return "tree: wrong range" + at;
        if (child.slots.empty()) return "tree: node without slots" + at;
        child.slots.for_each([&](SlotId slot) {
            const std::span<const Token> path = this->path(slot);
            if (!node.slots.contains(slot) || below.contains(slot))
                wrong = "tree: slot misplaced" + at;
            else if (path.size() < child.end)
                wrong = "tree: node beyond a path" + at;
            else if (path[child.begin] != entry.first)
                wrong = "tree: wrong first token" + at;
            else if (!std::ranges::equal(path.subspan(child.begin, child.end - child.begin),
                                         run(child)))
                wrong = "tree: run differs from a path" + at;
            below.add(slot);
        });
        if (!wrong.empty()) return wrong;
        if (node.child(entry.first) != &child) return "tree: two children alike" + at;
        if (wrong = check_node(child); !wrong.empty()) return wrong;
    }
    node.slots.without(below).for_each([&](SlotId slot) {
        if (path(slot).size() != node.end || tails_[static_cast<std::size_t>(slot)] != &node)
            wrong = "tree: path ends elsewhere" + at;
    });
    if (&node != &root_ && node.children.size() == 1 && below == node.slots)
        return "tree: needless split" + at;
    return wrong;
}

std::string RadixTree::check_integrity() const {
    return check_node(root_);
}

}  // namespace fermata
