"""Random material: words, names, paths, sentences, file contents. All functions take the rng.

words.txt is the BIP-39 English list (MIT). Some words are made up, so contents cannot be
memorised. Sets to score with use another seed and `score_with("heldout")`, which switches to a
disjoint tenth of the words and to other names and cities, or `score_with("train")`, which makes new
values of the words that training draws.
"""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
ALL_WORDS = open(os.path.join(HERE, "words.txt"), encoding="utf8").read().split()
WORDS = [w for i, w in enumerate(ALL_WORDS) if i % 10]
TOKENIZER = os.path.join(HERE, "tokenizer.json")
PIECES = sorted(p for p in json.load(open(TOKENIZER, encoding="utf8"))["model"]["vocab"] if p.isascii() and p.isalpha() and len(p) > 1) if os.path.exists(TOKENIZER) else []
NAMES = (
    "Ada Ben Cleo Dara Eli Femi Gus Hana Ivo Jo Kira Lars Mina Noor Otto Pia Quinn Rosa Sami Tess Uma Vera Wim Xenia "
    "Yara Zoe Anna Boris Clara David Elena Frank Grace Henry Iris Jack Karen Leo Maria Nina Oscar Paula Ravi Sara Tom "
    "Ursula Victor Wendy Yusuf Zara Chen Priya Amir Ingrid Mateo Sofia Kenji Olga Pierre Lucia Björn Zoë José Łukasz"
).split()
CITIES = (
    "Paris London Berlin Tokyo Madrid Rome Oslo Vienna Lisbon Dublin Prague Warsaw Athens Cairo Lagos Nairobi Mumbai "
    "Delhi Beijing Shanghai Seoul Sydney Melbourne Toronto Montreal Boston Chicago Seattle Denver Austin Miami Lima "
    "Bogotá Zürich Geneva Köln München Malmö Helsinki Tallinn Riga Vilnius Kyiv Istanbul Ankara Havana Quito Santiago"
).split()
EXTENSIONS = "txt txt txt txt md md md csv json log py ts js yaml html toml ini rst".split()
HELDOUT_NAMES = "Nora Felix Hugo Ines Bruno Lena Oskar Selma Viktor Amelia Tariq Yuki Petra Simon Julia Omar Greta Nils Emma Adam".split()
HELDOUT_CITIES = "Porto Milan Zagreb Dakar Accra Hanoi Manila Dallas Phoenix Bergen Leeds Turin Osaka Perth Lyon Graz Kraków Córdoba".split()
TRAIN_NAMES, TRAIN_CITIES = list(NAMES), list(CITIES)
VERBS = (
    "likes needs wants sees keeps moves sends finds makes holds brings takes opens closes watches paints repairs counts "
    "carries follows visits builds reads writes checks stores shares plans cleans"
).split()
ADJECTIVES = (
    "red blue green old new small large quiet bright dark early late warm cold heavy light open closed simple strange "
    "golden silver narrow wide fresh final first second third happy busy empty full round sharp soft"
).split()
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnprstvwz"


# Of words: listed ones; listed ones and compounds. Of names and cities: listed ones.
shares = (0.62, 0.90, 0.75)  # training has much that is made up, so that every piece is copied often


def score_with(split):
    """`train` or `heldout`: which words, names and cities are in use; the two have none in common."""
    global shares
    shares = (0.92, 0.96, 0.85)
    WORDS[:] = [w for i, w in enumerate(ALL_WORDS) if bool(i % 10) == (split == "train")]
    NAMES[:] = TRAIN_NAMES if split == "train" else HELDOUT_NAMES
    CITIES[:] = TRAIN_CITIES if split == "train" else HELDOUT_CITIES


def pseudoword(rng):
    parts = []
    for _ in range(rng.choice((1, 2, 2, 3))):
        parts.append(rng.choice(CONSONANTS) + rng.choice(VOWELS) + (rng.choice(CONSONANTS) if rng.random() < 0.4 else ""))
    text = "".join(parts)
    if rng.random() < 0.08:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice("áéíóúàèâêäöüñçøåæłžšćęß") + text[at + 1:]
    return text


def code(rng, low=2, high=6):
    """A short random string of letters and digits, as in temporary directory names."""
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHXYZ0123456789") for _ in range(rng.randint(low, high)))


def compound(rng):
    """Two pieces of the tokenizer's vocabulary; so every piece occurs, also those of held-out words."""
    return rng.choice(PIECES) + rng.choice(PIECES)


def word(rng):
    roll = rng.random()
    return rng.choice(WORDS) if roll < shares[0] else compound(rng) if roll < shares[1] else pseudoword(rng)


def name(rng):
    return rng.choice(NAMES) if rng.random() < shares[2] else pseudoword(rng).capitalize()


def city(rng):
    return rng.choice(CITIES) if rng.random() < shares[2] else pseudoword(rng).capitalize()


def number(rng):
    return rng.choice((rng.randint(0, 9), rng.randint(10, 99), rng.randint(100, 999), rng.randint(1000, 99999)))


def decimal(rng):
    return round(rng.uniform(0, 500), rng.choice((1, 2)))


def date(rng):
    return f"{rng.randint(1990, 2035)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def clock(rng):
    return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"


def identifier(rng):
    """A snake, kebab or plain identifier."""
    parts = [word(rng) for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 2)))]
    text = rng.choice("_-").join(parts)
    return text + (rng.choice(("", "-", "_")) + code(rng, 1, 3) if rng.random() < 0.1 else "")


def file_name(rng):
    stem = rng.choice(("notes", "todo", "readme", "README", "report", "index", "plan", "data", "hello", "main")) if rng.random() < 0.3 else identifier(rng)
    roll = rng.random()
    if roll < 0.1:
        stem = stem.capitalize()
    elif roll < 0.14:
        stem = stem.upper()
    elif roll < 0.22:
        stem += str(rng.randint(0, 2030))
    elif roll < 0.25:
        stem = date(rng) + "-" + stem
    return f"{stem}.{rng.choice(EXTENSIONS)}"


def file_names(rng, count):
    """Distinct names, sorted or not, as a directory listing has them."""
    found = {}
    while len(found) < count:
        found[file_name(rng)] = True
    return sorted(found) if rng.random() < 0.6 else list(found)


def directory(rng):
    part = lambda: identifier(rng) if rng.random() < 0.6 else rng.choice(("docs", "src", "notes", "data", "project", "files", "work", "test"))
    roll = rng.random()
    tail = "/".join(part() for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3))))
    if roll < 0.3:
        return f"/tmp/{identifier(rng) + '-' if rng.random() < 0.5 else ''}{code(rng)}" + ("/" + tail if rng.random() < 0.75 else "")
    if roll < 0.55:
        return f"/home/{name(rng).lower()}/{tail}"
    if roll < 0.62:
        return f"/Users/{name(rng).lower()}/{tail}"
    if roll < 0.78:
        return f"/{rng.choice(('srv', 'var', 'opt', 'data', 'work', 'mnt', 'etc', word(rng)))}/{tail}"
    if roll < 0.82:
        return "."
    return rng.choice(("", "./", "")) + tail


def join(folder, file):
    return file if folder == "." else f"{folder.rstrip('/')}/{file}"


def path(rng):
    return join(directory(rng), file_name(rng))


def phrase(rng, low=2, high=6):
    return " ".join(word(rng) for _ in range(rng.randint(low, high)))


def sentence(rng):
    who = rng.choice((name(rng), f"The {rng.choice(ADJECTIVES)} {word(rng)}", f"The {word(rng)}", f"My {word(rng)}", f"Every {word(rng)}"))
    what = rng.choice((f"the {word(rng)}", f"a {rng.choice(ADJECTIVES)} {word(rng)}", f"{number(rng)} {word(rng)}s", f"the {word(rng)} of {name(rng)}", phrase(rng, 1, 3)))
    where = rng.choice(("", "", f" in {city(rng)}", f" near the {word(rng)}", f" at {clock(rng)}", f" on {rng.choice(DAYS)}", f" with {name(rng)}", f" and {rng.choice(VERBS)} the {word(rng)}"))
    return f"{who} {rng.choice(VERBS)} {what}{where}{rng.choice(('.', '.', '.', '!'))}"


def awkward(rng):
    """A text with characters that JSON must escape, or that are not ASCII."""
    return rng.choice((
        f'{phrase(rng, 1, 3)} "{phrase(rng, 1, 2)}" {word(rng)}',
        f"{phrase(rng, 1, 2)}\\{word(rng)}",
        f"{phrase(rng, 1, 3)}\n{phrase(rng, 1, 3)}",
        f"{word(rng)} é {name(rng)} – {word(rng)}",
        f"{word(rng)}'s {word(rng)} ({number(rng)}%)",
        f"{word(rng)} → {word(rng)}",
        f"C:\\{word(rng)}\\{file_name(rng)}",
    ))


def line(rng):
    """One line of a file: prose, a key and a value, a list item, a heading, a row."""
    return rng.choice((
        sentence, sentence, sentence,
        lambda r: f"{word(r)}: {rng.choice((word, number, date, name, phrase))(r)}",
        lambda r: f"- {phrase(r)}",
        lambda r: f"{r.choice(('#', '##'))} {phrase(r, 1, 4).capitalize()}",
        lambda r: f"{word(r)},{number(r)},{word(r)}",
        lambda r: f"{word(r)} = {number(r)}",
        lambda r: phrase(r, 2, 8),
        lambda r: f"{r.randint(1, 9)}. {sentence(r)}",
        lambda r: f"{date(r)} {clock(r)} {phrase(r)}",
        awkward if rng.random() < 0.3 else sentence,
    ))(rng)


def lines(rng, low=1, high=8):
    out = []
    for _ in range(rng.randint(low, high)):
        if out and rng.random() < 0.08:
            out.append("")
        out.append(line(rng))
    return "\n".join(out)


def content(rng, high=8):
    """A file's text, usually ending in a newline."""
    return lines(rng, 1, high if rng.random() < 0.2 else 2) + ("\n" if rng.random() < 0.7 else "")
