"""Models of `transformers` from small configurations; nothing is downloaded."""

import torch
import transformers as hf

from models.row import Model, by_name

VOCABULARY, BATCH, STEPS = 64, 2, 8
TOKENS = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _tokens(steps=STEPS):
    return torch.randint(3, VOCABULARY, (BATCH, steps))


def _text():
    tokens = _tokens()
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens}


def _padded_text():
    """The second text is shorter than the first."""
    batch = _text()
    batch["attention_mask"][1, STEPS - 3:] = 0
    batch["labels"] = batch["labels"].masked_fill(batch["attention_mask"] == 0, -100)
    return batch


def bert(dropout):
    config = hf.BertConfig(**TOKENS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                           max_position_embeddings=16, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    return hf.BertForMaskedLM(config)


def gpt2(dropout):
    config = hf.GPT2Config(**TOKENS, n_embd=16, n_layer=2, n_head=2, n_positions=32, resid_pdrop=dropout, embd_pdrop=dropout,
                           attn_pdrop=dropout)
    return hf.GPT2LMHeadModel(config)


def llama(dropout):
    config = hf.LlamaConfig(**TOKENS, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
                            num_key_value_heads=2, max_position_embeddings=32, attention_dropout=dropout)
    return hf.LlamaForCausalLM(config)


def t5(dropout):
    config = hf.T5Config(**TOKENS, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, dropout_rate=dropout,
                         decoder_start_token_id=0)
    return hf.T5ForConditionalGeneration(config)


def vit(dropout):
    config = hf.ViTConfig(image_size=16, patch_size=4, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                          intermediate_size=32, num_labels=5, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    return hf.ViTForImageClassification(config)


def whisper(dropout):
    config = hf.WhisperConfig(**TOKENS, num_mel_bins=8, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
                              decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=16,
                              max_target_positions=32, decoder_start_token_id=1, dropout=dropout, attention_dropout=dropout,
                              suppress_tokens=None, begin_suppress_tokens=None)
    return hf.WhisperForConditionalGeneration(config)


def _translation():
    return {"input_ids": _tokens(), "labels": _tokens(5)}


def _pictures():
    return {"pixel_values": torch.randn(BATCH, 3, 16, 16), "labels": torch.randint(0, 5, (BATCH,))}


def _speech():
    return {"input_features": torch.randn(BATCH, 8, 32), "labels": _tokens(5)}


ROWS = [
    Model("BERT", bert, _padded_text, by_name),
    Model("GPT-2", gpt2, _text, by_name),
    Model("Llama", llama, _padded_text, by_name),
    Model("T5", t5, _translation, by_name),
    Model("ViT", vit, _pictures, by_name),
    Model("Whisper", whisper, _speech, by_name),
]  # fmt: skip


def _prompt():
    tokens = _tokens()
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


# Those that write texts: the model, and what it is asked to continue.
GENERATORS = {
    "GPT-2": (gpt2, _prompt),
    "Llama": (llama, _prompt),
    "T5": (t5, _prompt),
    "Whisper": (whisper, lambda: {"input_features": torch.randn(BATCH, 8, 32)}),
}
