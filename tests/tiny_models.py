"""Vision models of transformers, tiny and untrained."""

import transformers

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
SEEN = {"image_size": 32, "patch_size": 8}
TEXT = {"vocab_size": 50, "max_position_embeddings": 8, "eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 1}
STAGES = {"hidden_sizes": [8, 16, 32, 64], "depths": [1, 1, 1, 1]}
CROPPED = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}
SQUEEZED = CROPPED | {"size": {"height": 36, "width": 36}, "do_center_crop": True}
SQUARE = {"size": {"height": 32, "width": 32}}


def models():
    """Every kind: the model as it is published, and its image processor."""
    t = transformers
    vision, text = SMALL | SEEN, SMALL | TEXT
    clip = t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    siglip = t.SiglipConfig(text_config=text, vision_config=vision)
    vit = t.ViTImageProcessor(**SQUARE)
    return {
        "dinov2": (
            lambda: t.Dinov2Model(t.Dinov2Config(**vision | {"image_size": 40})),
            t.BitImageProcessor(**CROPPED),
        ),
        "registers": (
            lambda: t.Dinov2WithRegistersModel(t.Dinov2WithRegistersConfig(**vision, num_register_tokens=3)),
            t.BitImageProcessor(**CROPPED),
        ),
        "vit": (lambda: t.ViTModel(t.ViTConfig(**vision)), vit),
        "clip": (lambda: t.CLIPModel(clip), t.CLIPImageProcessor(**CROPPED)),
        "clip_vision": (lambda: t.CLIPVisionModel(clip.vision_config), t.CLIPImageProcessor(**CROPPED)),
        "siglip": (lambda: t.SiglipModel(siglip), t.SiglipImageProcessor(**SQUARE)),
        "siglip_vision": (lambda: t.SiglipVisionModel(siglip.vision_config), t.SiglipImageProcessor(**SQUARE)),
        "mae": (
            lambda: t.ViTMAEForPreTraining(
                t.ViTMAEConfig(**vision, decoder_hidden_size=32, decoder_num_hidden_layers=1)
            ),
            vit,
        ),
        "beit": (lambda: t.BeitModel(t.BeitConfig(**vision)), t.BeitImageProcessor(**SQUEEZED)),
        "deit": (lambda: t.DeiTModel(t.DeiTConfig(**vision)), t.DeiTImageProcessor(**SQUEEZED)),
        "swin": (
            lambda: t.SwinModel(
                t.SwinConfig(image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[1, 2], window_size=4)
            ),
            vit,
        ),
        "convnext": (
            lambda: t.ConvNextModel(t.ConvNextConfig(**STAGES)),
            t.ConvNextImageProcessor(size={"shortest_edge": 32}, crop_pct=0.875),
        ),
        "resnet": (
            lambda: t.ResNetForImageClassification(t.ResNetConfig(**STAGES, embedding_size=8, layer_type="basic")),
            t.ConvNextImageProcessor(size={"shortest_edge": 384}),
        ),
        "bert": (lambda: t.BertModel(t.BertConfig(**SMALL, vocab_size=20)), vit),
        "video": (lambda: t.VideoMAEModel(t.VideoMAEConfig(**vision, num_frames=2)), vit),
    }
