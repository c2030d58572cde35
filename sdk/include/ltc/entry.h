/* The work of every plugin at its entry and with its arguments, for plugins in C and C++. Header only; needs ltc/plugin.h alone.
 */
#ifndef LTC_ENTRY_H
#define LTC_ENTRY_H
#include "ltc/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool ltc_version_older(ltc_version a, ltc_version b) {
  return a.major != b.major ? a.major < b.major : a.minor < b.minor;
}

/* The first half of an entry: reads the host's range, writes the plugin's, and agrees on the newest version in both. False where
 * there is none; return false then, the host names both ranges. `oldest` and `newest` are literals, {1, 0}: the versions that the
 * plugin was written for. LTC_ABI_MINOR would claim a newer one whenever it is compiled again. */
static inline bool ltc_agree(ltc_entry_args* args, ltc_version oldest, ltc_version newest) {
  const ltc_version host_oldest = args->oldest, host_newest = args->newest;
  const ltc_version agreed = ltc_version_older(newest, host_newest) ? newest : host_newest;
  args->oldest = oldest;
  args->newest = newest;
  if (host_oldest.major != host_newest.major || agreed.major != oldest.major || ltc_version_older(agreed, oldest) ||
      ltc_version_older(agreed, host_oldest))
    return false;
  args->agreed = agreed;
  return true;
}

/* For a plugin without options: false, with the reason, where it is given one. */
static inline bool ltc_has_no_options(ltc_entry_args* args) {
  if (!LTC_HAS(args, ltc_entry_args, options) || args->option_count == 0) return true;
  args->reason = "the plugin has no options";
  return false;
}

/* The extension of `kind` in a chain, which may be NULL; NULL where there is none. */
static inline const ltc_extension* ltc_find_extension(const ltc_extension* first, uint32_t kind) {
  while (first && LTC_EXTENSION_KIND(first) != kind) first = first->next;
  return first;
}

/* Whether the text is `name`, `size` bytes of it, with `suffix` behind. */
static inline bool ltc_is_name(ltc_string text, const char* name, size_t size, const char* suffix) {
  size_t at = 0;
  if (text.size < size) return false;
  while (at < size && text.data[at] == name[at]) ++at;
  if (at < size) return false;
  while (at < text.size && suffix[at - size] && text.data[at] == suffix[at - size]) ++at;
  return at == text.size && !suffix[at - size];
}

/* The attribute of that name, `size` bytes of it and `suffix` behind; NULL where the node has none. */
static inline const ltc_attr* ltc_find_attr(const ltc_node* node, const char* name, size_t size, const char* suffix) {
  for (size_t i = 0; i < node->attr_count; ++i) {
    if (ltc_is_name(node->attrs[i]->name, name, size, suffix)) return node->attrs[i];
  }
  return NULL;
}

/* Whether an argument of an op is of the kind of this letter; ltc_node_matches lists the letters. */
static inline bool ltc_attr_is(const ltc_attr* attr, char letter, bool is_list, bool is_optional) {
  const ltc_attr_kind kind = attr->kind;
  if (kind == LTC_ATTR_NONE) return is_optional;
  switch (letter) {
    case 'S':
      return kind == LTC_ATTR_INT || kind == LTC_ATTR_FLOAT || kind == LTC_ATTR_BOOL ||
             (kind == LTC_ATTR_FLOATS && attr->count == 2);
    case 'I': return kind == (is_list ? LTC_ATTR_INTS : LTC_ATTR_INT);
    case 'F': return kind == LTC_ATTR_FLOATS;
    case 'B': return kind == LTC_ATTR_BOOL;
    case 'Z': return kind == (is_list ? LTC_ATTR_STRINGS : LTC_ATTR_STRING);
    case 'D': return kind == LTC_ATTR_DTYPE;
    default: return false;
  }
}

/* The rest of a node, from argument to argument. */
typedef struct ltc_arguments {
  const ltc_node* node;
  size_t inputs, attrs; /* how many of them are known */
} ltc_arguments;

/* Takes the next argument; false where the node does not have it as it should. */
static inline bool ltc_take_argument(ltc_arguments* known, char letter, bool is_list, bool is_optional, const char* name,
                                     size_t size) {
  const ltc_node* node = known->node;
  const size_t left = node->input_count - known->inputs;
  const bool is_tensor = letter == 'T';
  if (is_tensor && !is_list) return left > 0 && (node->inputs[known->inputs++] != LTC_NONE || is_optional);
  const ltc_attr* attr = ltc_find_attr(node, name, size, is_tensor ? ".count" : "");
  if (!attr && letter == 'S' && !is_list) return left > 0 && ++known->inputs; /* it varies from run to run */
  if (!attr) return !is_tensor || is_optional;
  ++known->attrs;
  if (!is_tensor) return ltc_attr_is(attr, letter, is_list, is_optional);
  if (attr->kind != LTC_ATTR_INT || attr->value.ints[0] < 0 || (uint64_t)attr->value.ints[0] > left) return false;
  known->inputs += (size_t)attr->value.ints[0];
  return true;
}

/* Whether the node has the operands of its op and no others: each attribute is known by name and kind, and so is the number of
 * inputs. To be asked before a node is claimed (ltc/plugin.h, "Ops").
 *
 * `operands` is ltc_op_operands(node->op) of ltc/opset.h, or written by hand; NULL, of an id that is not there, matches nothing.
 * The arguments in the order of the schema, "T:self I*?:dim B:keepdim". T tensor, S number (an attribute or an input), I int, F
 * float (lists only), B bool, Z string, D dtype; * a list, ? may be None. */
static inline bool ltc_node_matches(const ltc_node* node, const char* operands) {
  ltc_arguments known = {node, 0, 0};
  if (!operands) return false;
  while (*operands) {
    const char letter = *operands++;
    const bool is_list = *operands == '*', is_optional = operands[is_list] == '?';
    const char* const name = operands + is_list + is_optional + 1; /* behind the colon */
    size_t size = 0;
    while (name[size] && name[size] != ' ') ++size;
    operands = name + size + (name[size] == ' ');
    if (!ltc_take_argument(&known, letter, is_list, is_optional, name, size)) return false;
  }
  return known.inputs == node->input_count && known.attrs == node->attr_count;
}

/* `field` of *p, or zero where the side that filled *p did not know it: LTC_GET(info, ltc_plugin_info, flags). */
#define LTC_GET(p, type, field) (LTC_HAS(p, type, field) ? (p)->field : 0)

#ifdef __cplusplus
}
#endif
#endif /* LTC_ENTRY_H */
