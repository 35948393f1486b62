"""Networks that torchvision does not have, in PyTorch, after the papers: what zoo_against_torch.py
compares Weir's with. Names of parameters are those that Weir states (torchvision's or timm's form)."""
import torch
import torchvision
from torch import nn


class LeNet(nn.Module):
    """TensorFlow's tutorial form of LeCun et al., 1998: 5x5 convolutions of 32 and 64, 512 hidden."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 5, padding=2), nn.Conv2d(32, 64, 5, padding=2)
        self.fc1, self.fc2 = nn.Linear(64 * 7 * 7, 512), nn.Linear(512, 1000)

    def forward(self, x):
        x = torch.max_pool2d(self.conv1(x).relu(), 2)
        x = torch.max_pool2d(self.conv2(x).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


class Trivial(nn.Module):
    """tf_cnn_benchmarks' trivial_model.py."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(3 * 227 * 227, 1), nn.Linear(1, 4096), nn.Linear(4096, 1000)

    def forward(self, x):
        return self.fc3(self.fc2(self.fc1(x.flatten(1)).relu()).relu())


class Depthwise(nn.Module):
    """Table 1 of Howard et al., 2017: 3x3 depthwise and 1x1, each with norm and rectifier."""

    def __init__(self, n, k, stride):
        super().__init__()
        self.depthwise = nn.Conv2d(n, n, 3, stride, 1, groups=n, bias=False)
        self.pointwise = nn.Conv2d(n, k, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(n), nn.BatchNorm2d(k)

    def forward(self, x):
        x = nn.functional.relu6(self.bn1(self.depthwise(x)))
        return nn.functional.relu6(self.bn2(self.pointwise(x)))


class MobileNetV1(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)
        widths = [64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]
        n = 32
        for i, k in enumerate(widths):
            self.add_module(f"block{i + 1}", Depthwise(n, k, 2 if i in (1, 3, 5, 11) else 1))
            n = k
        self.fc = nn.Linear(n, 1000)

    def forward(self, x):
        x = nn.functional.relu6(self.bn(self.conv(x)))
        for i in range(13):
            x = getattr(self, f"block{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


def resnet50_v1():
    """He et al., CVPR 2016: the stride in the first 1x1; torchvision has it in the 3x3."""
    model = torchvision.models.resnet50(weights=None)
    for layer in (model.layer2, model.layer3, model.layer4):
        layer[0].conv1.stride, layer[0].conv2.stride = (2, 2), (1, 1)
    return model


class Preactivated(nn.Module):
    """Figure 4(e) of He et al., ECCV 2016; a shortcut of another shape begins behind the first rectifier."""

    def __init__(self, n, width, stride):
        super().__init__()
        k = 4 * width
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm2d(n), nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.conv1 = nn.Conv2d(n, width, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.conv3 = nn.Conv2d(width, k, 1, bias=False)
        self.downsample = nn.Sequential(nn.Conv2d(n, k, 1, stride, bias=False)) if n != k else None

    def forward(self, x):
        given = self.bn1(x).relu()
        shortcut = x if self.downsample is None else self.downsample(given)
        y = self.conv2(self.bn2(self.conv1(given)).relu())
        return self.conv3(self.bn3(y).relu()) + shortcut


class ResNet50V2(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        n = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width, layers = 64 << stage, []
            for i in range(blocks):
                layers.append(Preactivated(n, width, 2 if i == 0 and stage > 0 else 1))
                n = 4 * width
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.norm, self.fc = nn.BatchNorm2d(n), nn.Linear(n, 1000)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.norm(x).relu().mean((2, 3)))


class Unit(nn.Module):
    """Convolution, norm, rectifier: Szegedy et al., AAAI 2017. `pad`: keep the size."""

    def __init__(self, n, k, kernel, stride=1, pad=True):
        super().__init__()
        h, w = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        self.conv = nn.Conv2d(n, k, (h, w), stride, (h // 2, w // 2) if pad else 0, bias=False)
        self.bn = nn.BatchNorm2d(k, eps=0.001)

    def forward(self, x):
        return self.bn(self.conv(x)).relu()


def row(n, *units):
    """Units after each other: (k, kernel), or (k, kernel, stride) unpadded; one alone has no number."""
    made = []
    for k, kernel, *stride in units:
        made.append(Unit(n, k, kernel, *stride, pad=False) if stride else Unit(n, k, kernel))
        n = k
    return made[0] if len(made) == 1 else nn.Sequential(*made)


def pooled(n, k):
    return nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), Unit(n, k, 1))


class Branches(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        for i, branch in enumerate(branches):
            self.add_module(f"branch{i}", branch)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.children()], 1)


class Beside(nn.Module):
    """Figures 3 (first and third part): a convolution of stride 2 beside a pool."""

    def __init__(self, n, k, is_pool_first):
        super().__init__()
        self.conv, self.is_pool_first = Unit(n, k, 3, 2, pad=False), is_pool_first

    def forward(self, x):
        parts = [nn.functional.max_pool2d(x, 3, 2), self.conv(x)]
        return torch.cat(parts if self.is_pool_first else parts[::-1], 1)


class InceptionC(nn.Module):
    """Figure 6: rows that part at their ends."""

    def __init__(self):
        super().__init__()
        self.branch0, self.branch3 = Unit(1536, 256, 1), pooled(1536, 256)
        self.branch1_0 = Unit(1536, 384, 1)
        self.branch1_1a, self.branch1_1b = Unit(384, 256, (1, 3)), Unit(384, 256, (3, 1))
        self.branch2_0, self.branch2_1 = Unit(1536, 384, 1), Unit(384, 448, (3, 1))
        self.branch2_2 = Unit(448, 512, (1, 3))
        self.branch2_3a, self.branch2_3b = Unit(512, 256, (1, 3)), Unit(512, 256, (3, 1))

    def forward(self, x):
        wide, deep = self.branch1_0(x), self.branch2_2(self.branch2_1(self.branch2_0(x)))
        return torch.cat([self.branch0(x), self.branch1_1a(wide), self.branch1_1b(wide), self.branch2_3a(deep),
                          self.branch2_3b(deep), self.branch3(x)], 1)


def inception_a():
    return Branches(row(384, (96, 1)), row(384, (64, 1), (96, 3)), row(384, (64, 1), (96, 3), (96, 3)),
                    pooled(384, 96))


def inception_b():
    return Branches(row(1024, (384, 1)), row(1024, (192, 1), (224, (1, 7)), (256, (7, 1))),
                    row(1024, (192, 1), (192, (7, 1)), (224, (1, 7)), (224, (7, 1)), (256, (1, 7))),
                    pooled(1024, 128))


class InceptionV4(nn.Module):
    def __init__(self):
        super().__init__()
        reduce_a = Branches(row(384, (384, 3, 2)), row(384, (192, 1), (224, 3), (256, 3, 2)), nn.MaxPool2d(3, 2))
        reduce_b = Branches(row(1024, (192, 1), (192, 3, 2)),
                            row(1024, (256, 1), (256, (1, 7)), (320, (7, 1)), (320, 3, 2)), nn.MaxPool2d(3, 2))
        stem = [Unit(3, 32, 3, 2, pad=False), Unit(32, 32, 3, pad=False), Unit(32, 64, 3), Beside(64, 96, True),
                Branches(row(160, (64, 1), (96, 3, 1)), row(160, (64, 1), (64, (1, 7)), (64, (7, 1)), (96, 3, 1))),
                Beside(192, 192, False)]
        self.features = nn.Sequential(*stem, *[inception_a() for _ in range(4)], reduce_a,
                                      *[inception_b() for _ in range(7)], reduce_b,
                                      *[InceptionC() for _ in range(3)])
        self.last_linear = nn.Linear(1536, 1000)

    def forward(self, x):
        return self.last_linear(self.features(x).mean((2, 3)))


BUILDERS = {"lenet": LeNet, "trivial": Trivial, "mobilenet_v1": MobileNetV1, "resnet50_v1": resnet50_v1,
            "resnet50_v2": ResNet50V2, "inception_v4": InceptionV4}
SHAPES = {"lenet": (1, 28, 28), "trivial": (3, 227, 227), "inception_v3": (3, 299, 299), "inception_v4": (3, 299, 299)}
