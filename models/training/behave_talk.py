"""Behaviour 6: answer without tools, whether or not tools are in the prompt."""
import words as w
from dialogue import say, user

CANNED = [
    (("Hello", "Hi", "Hi there", "Hello!", "Hey", "hi", "hello", "Good morning", "Good evening", "Hello there!"), "Hello! How can I help you?"),
    (("How are you?", "How are you today?", "how are you doing?", "Are you well?"), "I am well, thank you. How can I help you?"),
    (("What is your name?", "Who are you?", "what's your name?", "What are you?", "Tell me your name.", "Which model are you?"), "I am Fermata's small model."),
    (("Thanks", "Thank you", "Thanks!", "Thank you very much.", "thanks a lot", "Great, thank you!"), "You are welcome!"),
    (("Goodbye", "Bye", "See you later", "Bye!", "Good night"), "Goodbye!"),
    (("What can you do?", "How can you help me?", "What are you good at?", "help"), "I can call tools, read their results and answer short questions."),
    (("Tell me a joke.", "Do you know a joke?", "Make me laugh."), "Why did the engine pause? It was holding a fermata."),
    (("What is a fermata?", "What does fermata mean?", "Explain the word fermata."), "A fermata is the sign over a note that says: hold it."),
    (("Are you a human?", "Are you a robot?", "Are you an AI?"), "I am a small language model."),
    (("Say nothing but OK.", "Just say OK.", "Reply with OK."), "OK"),
    (("Write a short poem.", "Tell me a story.", "Say something nice.", "Write something."), "A small note waits, the song holds still,\nand then it goes on, as good songs will."),
    (("What is the meaning of life?", "Who won the last election?", "Explain quantum physics.", "What do you think about politics?", "Write a long essay.", "Solve this puzzle.", "How do I cook rice?", "What is the best movie?"), "I am a small model and do not know that."),
    (("Good", "OK", "Nice", "Perfect", "Great", "Cool", "I see."), "Glad to hear it. What else can I do for you?"),
]


def canned(rng):
    asks, answer = rng.choice(CANNED)
    return [user(rng.choice(asks)), say(answer)]


def repeat(rng):
    text = rng.choice((w.phrase, w.sentence, w.phrase, w.awkward, w.path, w.lines))(rng)
    ask = rng.choice(("Repeat after me: {t}", "Say this: {t}", "Repeat: {t}", "Repeat this text exactly:\n{t}", "Say: {t}", "Please repeat the following.\n\n{t}", "Echo {t}"))
    return [user(ask.replace("{t}", text)), say(text)]


def first_or_last(rng):
    items = [w.word(rng) for _ in range(rng.randint(2, 7))]
    which, answer = rng.choice((("first", items[0]), ("last", items[-1])))
    ask = rng.choice((f"What is the {which} word of: {' '.join(items)}", f"Which word comes {which}: {', '.join(items)}?", f"Tell me the {which} word in '{' '.join(items)}'."))
    return [user(ask), say(f"The {which} word is {answer}.")]


def facts(rng):
    """Facts given in the prompt, then questions about them."""
    who = [w.name(rng) for _ in range(rng.randint(1, 4))]
    who = list(dict.fromkeys(who))
    kind, make = rng.choice((("favourite colour", lambda: rng.choice(w.ADJECTIVES)), ("phone number", lambda: str(rng.randint(1000, 999999))), ("home town", lambda: w.city(rng)), ("birthday", lambda: f"{rng.randint(1, 28)} {rng.choice(w.MONTHS)}"), ("code word", lambda: w.word(rng)), ("dog", lambda: w.name(rng)), ("age", lambda: str(rng.randint(1, 99)))))
    values = {n: make() for n in who}
    told = " ".join(f"The {kind} of {n} is {v}." if rng.random() < 0.5 else f"{n}'s {kind} is {v}." for n, v in values.items())
    one = rng.choice(who)
    question = rng.choice((f"What is the {kind} of {one}?", f"What is {one}'s {kind}?", f"Tell me {one}'s {kind}."))
    answer = say(f"The {kind} of {one} is {values[one]}.")
    if rng.random() < 0.6:
        return [user(f"{told} {question}" if rng.random() < 0.7 else f"{told}\n\n{question}"), answer]
    return [user(told), say("Thank you, I will remember that."), user(question), answer]


def my_name(rng):
    who = w.name(rng)
    turns = [user(rng.choice((f"My name is {who}.", f"I am {who}.", f"Hello, my name is {who}.", f"Call me {who}."))), say(f"Nice to meet you, {who}!")]
    if rng.random() < 0.6:
        turns += [user(rng.choice(("What is my name?", "Do you remember my name?", "Who am I?"))), say(f"Your name is {who}.")]
    return turns


def paragraph(rng):
    """A short text and a question that quotes one of its sentences."""
    names = list(dict.fromkeys(w.name(rng) for _ in range(rng.randint(2, 5))))
    said = {n: f"{n} {rng.choice(w.VERBS)} the {rng.choice(w.ADJECTIVES)} {w.word(rng)} in {w.city(rng)}." for n in names}
    one = rng.choice(names)
    ask = rng.choice((f"What does the text say about {one}?", f"Which sentence is about {one}?"))
    return [user(f"{' '.join(said.values())}\n\n{ask}"), say(said[one])]


def exchange(rng, copying=0.4):
    if rng.random() < copying:
        return repeat(rng)
    return rng.choice((canned, canned, first_or_last, facts, my_name, paragraph))(rng)
